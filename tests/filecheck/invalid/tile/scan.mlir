tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: axis 1 is out of range for rank 1
  %y = tile.scan<sum> %x, 1 : tensor<4xf32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: xor reduces bool or int or uint elements, got f32
  %y = tile.scan<xor> %x, 0 : tensor<4xf32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: running along axis 0 of tensor<4xf32> does not give tensor<5xf32>
  %y = tile.scan<sum> %x, 0 : tensor<4xf32> -> tensor<5xf32>
  tile.return
}
