// RUN: tessera opt %s | filecheck %s
// How many groups of copies may still be under way.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.wait 0
  nv.wait 3 {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.wait 0
// CHECK-NEXT:     nv.wait 3 {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
