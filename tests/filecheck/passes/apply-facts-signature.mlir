// RUN: tessera opt %s -p apply-facts -f "arg1.size[0] = 64" -f "arg0.size[1] = 8" | filecheck %s
// Sizes with one name in the signature are equal on every call; a constant in it needs no guard.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[N, 8], [N]] grid [1] {
  %n = tile.dim %x, 0 : !tile.view<2, f32, global>
  %eight = tile.dim %x, 1 : !tile.view<2, f32, global>
  tile.debug_print "64, 8", %n, %eight : index, index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[N, 8], [N]] grid [1] {
// CHECK-NEXT:     %n = arith.constant 64 : index
// CHECK-NEXT:     %eight = arith.constant 8 : index
// CHECK-NEXT:     tile.debug_print "64, 8", %n, %eight : index, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg1.size[0] = 64
// CHECK-NOT: guard
