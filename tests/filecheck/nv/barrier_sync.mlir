// RUN: tessera opt %s | filecheck %s
// Named barriers: some warps meet.
nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  nv.barrier_sync %i, 256
  nv.barrier_sync %i, 32 {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     nv.barrier_sync %i, 256
// CHECK-NEXT:     nv.barrier_sync %i, 32 {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
