// RUN: tessera opt %s -p apply-facts -f "arg0.size[0] = 0" | filecheck %s
// RUN: tessera opt %s -p apply-facts -f "arg0.size[0] = 48" | filecheck %s --check-prefix=SOME
// A loop over nothing gives its start; otherwise its bound is known.
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %n = tile.dim %x, 0 : !tile.view<1, f32, global>
  %sum = scf.for %i = %zero to %n step %step iter_args(%partial = %zero) -> (index) {
    %next = arith.addi %partial, %i : index
    scf.yield %next : index
  }
  tile.debug_print "sum", %sum : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
// CHECK-NEXT:     %sum = arith.constant 0 : index
// CHECK-NEXT:     tile.debug_print "sum", %sum : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.size[0] = 0
// CHECK-NOT: guard

// SOME: builtin.module {
// SOME-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
// SOME-NEXT:     %zero = arith.constant 0 : index
// SOME-NEXT:     %step = arith.constant 16 : index
// SOME-NEXT:     %n = arith.constant 48 : index
// SOME-NEXT:     %sum = scf.for %i = %zero to %n step %step iter_args(%partial = %zero) -> (index) {
// SOME-NEXT:       %next = arith.addi %partial, %i : index
// SOME-NEXT:       scf.yield %next : index
// SOME-NEXT:     }
// SOME-NEXT:     tile.debug_print "sum", %sum : index
// SOME-NEXT:     tile.return
// SOME-NEXT:   }
// SOME-NEXT: }
// SOME-NEXT: // guard: arg0.size[0] = 48
// SOME-NOT: guard
