// RUN: tessera opt %s | filecheck %s
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.warp_sync
  nv.warp_sync {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.warp_sync
// CHECK-NEXT:     nv.warp_sync {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
