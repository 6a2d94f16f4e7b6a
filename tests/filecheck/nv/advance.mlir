// RUN: tessera opt %s | filecheck %s
// The next slot of a ring, and its phase.
nv.func @f(%s: i32, %p: i32) outputs 0 shapes [[], []] grid [1] threads 128 {
  %a, %b = nv.advance %s, %p, 4
  %c, %d = nv.advance %a, %b, 1 {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%s: i32, %p: i32) outputs 0 shapes [[], []] grid [1] threads 128 {
// CHECK-NEXT:     %a, %b = nv.advance %s, %p, 4
// CHECK-NEXT:     %c, %d = nv.advance %a, %b, 1 {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
