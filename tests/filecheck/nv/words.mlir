// RUN: tessera opt %s | filecheck %s
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.words : !nv.words<1>
  %b = nv.words {k} : !nv.words<2>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.words : !nv.words<1>
// CHECK-NEXT:     %b = nv.words {k} : !nv.words<2>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
