// RUN: tessera opt %s | filecheck %s
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.return
}
nv.func @g() outputs 0 shapes [] grid [1] threads 128 {
  nv.return {last}
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT:   nv.func @g() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.return {last}
// CHECK-NEXT:   }
// CHECK-NEXT: }
