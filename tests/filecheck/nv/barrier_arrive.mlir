// RUN: tessera opt %s | filecheck %s
// Counts at a named barrier, and goes on.
nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  nv.barrier_arrive %i, 256
  nv.barrier_arrive %i, 1024 {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     nv.barrier_arrive %i, 256
// CHECK-NEXT:     nv.barrier_arrive %i, 1024 {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
