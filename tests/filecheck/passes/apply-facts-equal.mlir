// RUN: tessera opt %s -p apply-facts,cse,canonicalize -f "arg0.size[0] = arg1.size[0]" | filecheck %s
// RUN: tessera opt %s -p apply-facts -f "arg0.size[0] = arg1.size[0]" -f "arg1.size[0] = arg2.size[0]" -f "arg2.size[0] = 12" | filecheck %s --check-prefix=CHAIN
// Sizes known to be equal are asked of the first argument; through equals a constant reaches all of them.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>, %z: !tile.view<1, f32, global>) outputs 0 shapes [[A], [B], [C]] grid [1] {
  %a = tile.dim %x, 0 : !tile.view<1, f32, global>
  %b = tile.dim %y, 0 : !tile.view<1, f32, global>
  %same = arith.cmpi eq, %a, %b : index
  tile.debug_print "same", %same, %b : i1, index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>, %z: !tile.view<1, f32, global>) outputs 0 shapes [[A], [B], [C]] grid [1] {
// CHECK-NEXT:     %b = tile.dim %x, 0 : !tile.view<1, f32, global>
// CHECK-NEXT:     %same = arith.constant true
// CHECK-NEXT:     tile.debug_print "same", %same, %b : i1, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.size[0] = arg1.size[0]
// CHECK-NOT: guard

// CHAIN: builtin.module {
// CHAIN-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>, %z: !tile.view<1, f32, global>) outputs 0 shapes [[A], [B], [C]] grid [1] {
// CHAIN-NEXT:     %b = arith.constant 12 : index
// CHAIN-NEXT:     %same = arith.constant true
// CHAIN-NEXT:     tile.debug_print "same", %same, %b : i1, index
// CHAIN-NEXT:     tile.return
// CHAIN-NEXT:   }
// CHAIN-NEXT: }
// CHAIN-NEXT: // guard: arg0.size[0] = arg1.size[0]
// CHAIN-NEXT: // guard: arg1.size[0] = arg2.size[0]
// CHAIN-NEXT: // guard: arg2.size[0] = 12
// CHAIN-NOT: guard
