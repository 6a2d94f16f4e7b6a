// RUN: tessera opt %s | filecheck %s
// Neighbours along any axis, two elements of 4 bits to a byte.
tile.func @f(%x: !tile.view<2, i4, global>, %y: !tile.view<1, ui4, global>, %i: index) outputs 0 shapes [[M, N], [N], []] grid [1] {
  %t = tile.load %x[%i, %i] : !tile.view<2, i4, global> -> tensor<8x16xi4>
  %s = tile.load %y[%i] : !tile.view<1, ui4, global> -> tensor<6xui4>
  %rows = tile.pack %t, 0 : tensor<8x16xi4> -> tensor<4x16xui8>
  %columns = tile.pack %t, 1 {k} : tensor<8x16xi4> -> tensor<8x8xi8>
  %one = tile.pack %s, 0 : tensor<6xui4> -> tensor<3xui8>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, i4, global>, %y: !tile.view<1, ui4, global>, %i: index) outputs 0 shapes [[M, N], [N], []] grid [1] {
// CHECK-NEXT:     %t = tile.load %x[%i, %i] : !tile.view<2, i4, global> -> tensor<8x16xi4>
// CHECK-NEXT:     %s = tile.load %y[%i] : !tile.view<1, ui4, global> -> tensor<6xui4>
// CHECK-NEXT:     %rows = tile.pack %t, 0 : tensor<8x16xi4> -> tensor<4x16xui8>
// CHECK-NEXT:     %columns = tile.pack %t, 1 {k} : tensor<8x16xi4> -> tensor<8x8xi8>
// CHECK-NEXT:     %one = tile.pack %s, 0 : tensor<6xui4> -> tensor<3xui8>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
