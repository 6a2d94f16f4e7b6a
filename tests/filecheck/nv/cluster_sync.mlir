// RUN: tessera opt %s | filecheck %s
nv.func @f() outputs 0 shapes [] grid [1] threads 128 attributes {cluster = 2 : i64} {
  nv.cluster_sync
  nv.cluster_sync aligned
  nv.cluster_sync aligned {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 attributes {cluster = 2 : i64} {
// CHECK-NEXT:     nv.cluster_sync
// CHECK-NEXT:     nv.cluster_sync aligned
// CHECK-NEXT:     nv.cluster_sync aligned {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
