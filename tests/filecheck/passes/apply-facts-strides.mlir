// RUN: tessera opt %s -p apply-facts -f "arg0.stride[1] = 1" -f "arg0.stride[0] = -8" | filecheck %s
// Strides may be negative; one that is 1 makes a multiplication vanish.
tile.func @f(%x: !tile.view<2, f32, global>, %j: index) outputs 0 shapes [[M, N], []] grid [1] {
  %row = tile.stride %x, 0 : !tile.view<2, f32, global>
  %column = tile.stride %x, 1 : !tile.view<2, f32, global>
  %offset = arith.muli %j, %column : index
  tile.debug_print "-8, j", %row, %offset : index, index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %j: index) outputs 0 shapes [[M, N], []] grid [1] {
// CHECK-NEXT:     %row = arith.constant -8 : index
// CHECK-NEXT:     tile.debug_print "-8, j", %row, %j : index, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.stride[0] = -8
// CHECK-NEXT: // guard: arg0.stride[1] = 1
// CHECK-NOT: guard
