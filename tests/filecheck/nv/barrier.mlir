// RUN: tessera opt %s | filecheck %s
// All threads of a block meet.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.barrier
  nv.barrier {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.barrier
// CHECK-NEXT:     nv.barrier {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
