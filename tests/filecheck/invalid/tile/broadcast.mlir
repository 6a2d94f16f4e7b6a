tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: tensor<4xf32> does not broadcast to tensor<8xf32>: only axes of size 1 repeat
  %y = tile.broadcast %x : tensor<4xf32> -> tensor<8xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: tensor<4xf32> does not broadcast to tensor<2x4xf32>: only axes of size 1 repeat
  %y = tile.broadcast %x : tensor<4xf32> -> tensor<2x4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<1xf32>
  // expected: broadcasting keeps the element type: tensor<1xf32> became tensor<4xf64>
  %y = tile.broadcast %x : tensor<1xf32> -> tensor<4xf64>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<1xf32>
  // expected: Expected ':'
  %y = tile.broadcast %x, 4 : tensor<1xf32> -> tensor<4xf32>
  tile.return
}
