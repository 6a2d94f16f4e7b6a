// RUN: tessera opt %s | filecheck %s
// The two elements of 4 bits that each byte holds, along any axis.
tile.func @f(%x: !tile.view<2, ui8, global>, %y: !tile.view<2, i8, global>, %i: index) outputs 0 shapes [[M, N], [M, N], []] grid [1] {
  %t = tile.load %x[%i, %i] : !tile.view<2, ui8, global> -> tensor<8x16xui8>
  %s = tile.load %y[%i, %i] : !tile.view<2, i8, global> -> tensor<1x3xi8>
  %rows = tile.unpack %t, 0 : tensor<8x16xui8> -> tensor<16x16xi4>
  %columns = tile.unpack %t, 1 {k} : tensor<8x16xui8> -> tensor<8x32xui4>
  %floats = tile.unpack %s, 1 : tensor<1x3xi8> -> tensor<1x6xf4E2M1FN>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, ui8, global>, %y: !tile.view<2, i8, global>, %i: index) outputs 0 shapes [[M, N], [M, N], []] grid [1] {
// CHECK-NEXT:     %t = tile.load %x[%i, %i] : !tile.view<2, ui8, global> -> tensor<8x16xui8>
// CHECK-NEXT:     %s = tile.load %y[%i, %i] : !tile.view<2, i8, global> -> tensor<1x3xi8>
// CHECK-NEXT:     %rows = tile.unpack %t, 0 : tensor<8x16xui8> -> tensor<16x16xi4>
// CHECK-NEXT:     %columns = tile.unpack %t, 1 {k} : tensor<8x16xui8> -> tensor<8x32xui4>
// CHECK-NEXT:     %floats = tile.unpack %s, 1 : tensor<1x3xi8> -> tensor<1x6xf4E2M1FN>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
