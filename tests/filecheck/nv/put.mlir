// RUN: tessera opt %s | filecheck %s
nv.func @f(%i: i32, %j: i32) outputs 0 shapes [[], []] grid [1] threads 128 {
  %w = nv.words : !nv.words<2>
  nv.put %i, %w[%j] : !nv.words<2>
  nv.put %j, %w[%j] {k} : !nv.words<2>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32, %j: i32) outputs 0 shapes [[], []] grid [1] threads 128 {
// CHECK-NEXT:     %w = nv.words : !nv.words<2>
// CHECK-NEXT:     nv.put %i, %w[%j] : !nv.words<2>
// CHECK-NEXT:     nv.put %j, %w[%j] {k} : !nv.words<2>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
