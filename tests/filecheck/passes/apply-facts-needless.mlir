// RUN: tessera opt %s -p apply-facts -f "arg0.size[0] = 64" -f "arg1 = 0" -f "arg0.dtype = f32" -f "arg0.rank = 1" -f "arg0 disjoint arg1" | filecheck %s
// A multiplication by zero needs to know only the zero; dtype and rank are the signature's own; a dead value needs nothing.
tile.func @f(%x: !tile.view<1, f32, global>, %k: index) outputs 0 shapes [[N], []] grid [1] {
  %n = tile.dim %x, 0 : !tile.view<1, f32, global>
  %nothing = arith.muli %n, %k : index
  %dead = arith.addi %n, %n : index
  tile.debug_print "0", %nothing : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %k: index) outputs 0 shapes [[N], []] grid [1] {
// CHECK-NEXT:     %nothing = arith.constant 0 : index
// CHECK-NEXT:     tile.debug_print "0", %nothing : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg1 = 0
// CHECK-NOT: guard
