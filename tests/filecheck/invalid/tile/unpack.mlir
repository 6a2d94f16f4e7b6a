tile.func @f(%x: !tile.view<2, ui8, global>, %y: !tile.view<2, i4, global>, %i: index) outputs 0 shapes [[M, N], [M, N], []] grid [1] {
  %t = tile.load %x[%i, %i] : !tile.view<2, ui8, global> -> tensor<4x8xui8>
  %h = tile.load %y[%i, %i] : !tile.view<2, i4, global> -> tensor<4x8xi4>
  // expected: expected elements of u8, i8, got tensor<4x8xi4>
  %u = tile.unpack %h, 0 : tensor<4x8xi4> -> tensor<8x8xi4>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, ui8, global>, %y: !tile.view<2, i4, global>, %i: index) outputs 0 shapes [[M, N], [M, N], []] grid [1] {
  %t = tile.load %x[%i, %i] : !tile.view<2, ui8, global> -> tensor<4x8xui8>
  %h = tile.load %y[%i, %i] : !tile.view<2, i4, global> -> tensor<4x8xi4>
  // expected: expected elements of f4e2m1, i4, u4, got tensor<8x8xi8>
  %u = tile.unpack %t, 0 : tensor<4x8xui8> -> tensor<8x8xi8>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, ui8, global>, %y: !tile.view<2, i4, global>, %i: index) outputs 0 shapes [[M, N], [M, N], []] grid [1] {
  %t = tile.load %x[%i, %i] : !tile.view<2, ui8, global> -> tensor<4x8xui8>
  %h = tile.load %y[%i, %i] : !tile.view<2, i4, global> -> tensor<4x8xi4>
  // expected: axis 2 is out of range for rank 2
  %u = tile.unpack %t, 2 : tensor<4x8xui8> -> tensor<8x8xi4>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, ui8, global>, %y: !tile.view<2, i4, global>, %i: index) outputs 0 shapes [[M, N], [M, N], []] grid [1] {
  %t = tile.load %x[%i, %i] : !tile.view<2, ui8, global> -> tensor<4x8xui8>
  %h = tile.load %y[%i, %i] : !tile.view<2, i4, global> -> tensor<4x8xi4>
  // expected: tensor<4x8xui8> has two elements of 4 bits to a byte along axis 1, unlike tensor<8x8xi4>
  %u = tile.unpack %t, 1 : tensor<4x8xui8> -> tensor<8x8xi4>
  tile.return
}
