// RUN: tessera opt %s | filecheck %s
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.tma_commit
  nv.tma_commit {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.tma_commit
// CHECK-NEXT:     nv.tma_commit {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
