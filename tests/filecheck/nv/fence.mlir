// RUN: tessera opt %s | filecheck %s
// What others are to see.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.fence<init>
  nv.fence<async> {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.fence<init>
// CHECK-NEXT:     nv.fence<async> {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
