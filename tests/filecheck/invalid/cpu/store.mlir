cpu.func @f(%n: index, %x: f64) shapes [[], []] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf32>
  %t = tile.full %x : tensor<4x4xf64>
  // expected: the buffer holds f32, the tile f64
  cpu.store %t, %b[%n, %n] : tensor<4x4xf64>, !cpu.buffer<4x4xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f64) shapes [[], []] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf64>
  %t = tile.full %x : tensor<1x2x2xf64>
  // expected: tensor<1x2x2xf64> has more than rows and columns
  cpu.store %t, %b[%n, %n] : tensor<1x2x2xf64>, !cpu.buffer<4x4xf64>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f64) shapes [[], []] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf32>
  // expected: f64 should be of base attribute
  cpu.store %x, %b[%n, %n] : f64, !cpu.buffer<4x4xf32>
  cpu.return
}
