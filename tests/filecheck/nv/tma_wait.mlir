// RUN: tessera opt %s | filecheck %s
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.tma_wait 0
  nv.tma_wait 1 read
  nv.tma_wait 3 read {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.tma_wait 0
// CHECK-NEXT:     nv.tma_wait 1 read
// CHECK-NEXT:     nv.tma_wait 3 read {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
