// RUN: tessera opt %s -p apply-facts -f "arg0.size[0] = 64" -f "arg0.size[1] = 96" | filecheck %s
// Sizes that are asked for become constants and guards; the size of axis 1 is never asked for.
tile.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[M, N]] grid [1] {
  %m = tile.dim %x, 0 : !tile.view<2, f32, global>
  %sixteen = arith.constant 16 : index
  %blocks = arith.divsi %m, %sixteen : index
  tile.debug_print "4", %blocks : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[M, N]] grid [1] {
// CHECK-NEXT:     %blocks = arith.constant 4 : index
// CHECK-NEXT:     tile.debug_print "4", %blocks : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.size[0] = 64
// CHECK-NOT: guard
