tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<2x3xf32>
  // expected: [0, 0] is not a permutation of 2 axes
  %y = tile.trans %x, [0, 0] : tensor<2x3xf32> -> tensor<2x2xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<2x3xf32>
  // expected: [1] is not a permutation of 2 axes
  %y = tile.trans %x, [1] : tensor<2x3xf32> -> tensor<3xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<2x3xf32>
  // expected: permuting tensor<2x3xf32> by [1, 0] does not give tensor<2x3xf32>
  %y = tile.trans %x, [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<2x3xf32>
  // expected: Expected integer literal
  %y = tile.trans %x, [b, a] : tensor<2x3xf32> -> tensor<3x2xf32>
  tile.return
}
