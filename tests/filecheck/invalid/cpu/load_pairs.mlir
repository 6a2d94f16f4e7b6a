cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xi4>
  %o = cpu.buffer : !cpu.buffer<8x40xf32>
  // expected: 1 starts of tensor<4x16xui8> for a tile of [8, 40]
  %t = cpu.load_pairs %b[%i] of [8, 40] along 0 : !cpu.buffer<8x40xi4> -> tensor<4x16xui8>
  cpu.return
}
// -----
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xi4>
  %o = cpu.buffer : !cpu.buffer<8x40xf32>
  // expected: 2 starts of tensor<16xui8> for a tile of [8, 40]
  %t = cpu.load_pairs %b[%i, %i] of [8, 40] along 0 : !cpu.buffer<8x40xi4> -> tensor<16xui8>
  cpu.return
}
// -----
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xi4>
  %o = cpu.buffer : !cpu.buffer<8x40xf32>
  // expected: axis 2 is out of range for rank 2
  %t = cpu.load_pairs %b[%i, %i] of [8, 40] along 2 : !cpu.buffer<8x40xi4> -> tensor<4x16xui8>
  cpu.return
}
// -----
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xi4>
  %o = cpu.buffer : !cpu.buffer<8x40xf32>
  // expected: a tile of [9, 40] does not lie in
  %t = cpu.load_pairs %b[%i, %i] of [9, 40] along 0 : !cpu.buffer<8x40xi4> -> tensor<4x16xui8>
  cpu.return
}
// -----
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xi4>
  %o = cpu.buffer : !cpu.buffer<8x40xf32>
  // expected: expected elements of f4e2m1, i4, u4, got f32
  %t = cpu.load_pairs %o[%i, %i] of [8, 40] along 0 : !cpu.buffer<8x40xf32> -> tensor<4x16xui8>
  cpu.return
}
// -----
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xi4>
  %o = cpu.buffer : !cpu.buffer<8x40xf32>
  // expected: expected elements of u8, i8, got i16
  %t = cpu.load_pairs %b[%i, %i] of [8, 40] along 0 : !cpu.buffer<8x40xi4> -> tensor<4x16xi16>
  cpu.return
}
