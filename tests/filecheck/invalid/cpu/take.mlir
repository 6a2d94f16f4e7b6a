cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xf32>
  %p = tile.iota %i, 0 : tensor<4x16xi64>
  %n = tile.iota %i, 0 : tensor<4x16xi32>
  // expected: 2 tiles of places for a tile of [40], of one or two axes
  %t = cpu.take %b[%p, %p] of [40] : !cpu.buffer<8x40xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16xf32>
  cpu.return
}
// -----
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xf32>
  %p = tile.iota %i, 0 : tensor<4x16xi64>
  %n = tile.iota %i, 0 : tensor<4x16xi32>
  // expected: a tile of [9, 40] does not lie in
  %t = cpu.take %b[%p, %p] of [9, 40] : !cpu.buffer<8x40xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16xf32>
  cpu.return
}
// -----
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xf32>
  %p = tile.iota %i, 0 : tensor<4x16xi64>
  %n = tile.iota %i, 0 : tensor<4x16xi32>
  // expected: places are i64 tiles of one shape, not tensor<4x16xi32>
  %t = cpu.take %b[%p, %n] of [8, 40] : !cpu.buffer<8x40xf32>, tensor<4x16xi64>, tensor<4x16xi32> -> tensor<4x16xf32>
  cpu.return
}
// -----
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xf32>
  %p = tile.iota %i, 0 : tensor<4x16xi64>
  %n = tile.iota %i, 0 : tensor<4x16xi32>
  // expected: the buffer holds f32, the tile i64
  %t = cpu.take %b[%p, %p] of [8, 40] : !cpu.buffer<8x40xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16xi64>
  cpu.return
}
