cpu.func @f(%n: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf32>
  // expected: the buffer holds f32, the tile f64
  %t = cpu.load %b[%n, %n] : !cpu.buffer<4x4xf32> -> tensor<4x4xf64>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf32>
  // expected: tensor<1x2x2xf32> has more than rows and columns
  %t = cpu.load %b[%n, %n] : !cpu.buffer<4x4xf32> -> tensor<1x2x2xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf32>
  // expected: the tile tensor<?xf32> must have constant sizes
  %t = cpu.load %b[%n, %n] : !cpu.buffer<4x4xf32> -> tensor<?xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf32>
  // expected: a column of a buffer is a tile of one column, not tensor<4x2xf32>
  %t = cpu.load column %b[%n, %n] : !cpu.buffer<4x4xf32> -> tensor<4x2xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf32>
  // expected: a column of a buffer is a tile of one column, not tensor<4xf32>
  %t = cpu.load column %b[%n, %n] : !cpu.buffer<4x4xf32> -> tensor<4xf32>
  cpu.return
}
// -----
cpu.func @f(%x: !tile.view<2, f32, global>, %n: index) shapes [[M, N], []] grid [1] {
  // expected: tile.view<2, f32, global> should be of base attribute cpu.buffer
  %t = cpu.load %x[%n, %n] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<4x4xf32>
  // expected: Expected ','
  %t = cpu.load %b[%n] : !cpu.buffer<4x4xf32> -> tensor<4xf32>
  cpu.return
}
