// RUN: tessera opt %s | filecheck %s
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.reset 0
  nv.reset 1 {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.reset 0
// CHECK-NEXT:     nv.reset 1 {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
