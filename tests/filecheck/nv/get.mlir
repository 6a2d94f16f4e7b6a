// RUN: tessera opt %s | filecheck %s
nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %w = nv.words : !nv.words<2>
  %a = nv.get %w[%i] : !nv.words<2>
  %b = nv.get %w[%a] {k} : !nv.words<2>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %w = nv.words : !nv.words<2>
// CHECK-NEXT:     %a = nv.get %w[%i] : !nv.words<2>
// CHECK-NEXT:     %b = nv.get %w[%a] {k} : !nv.words<2>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
