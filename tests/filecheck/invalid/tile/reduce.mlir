tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: axis 1 is out of range for rank 1
  %y = tile.reduce<sum> %x, 1 : tensor<4xf32> -> tensor<f32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: axis -1 is out of range for rank 1
  %y = tile.reduce<sum> %x, -1 : tensor<4xf32> -> tensor<f32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: xor reduces bool or int or uint elements, got f32
  %y = tile.reduce<xor> %x, 0 : tensor<4xf32> -> tensor<f32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: folding axis 0 of tensor<4xf32> does not give tensor<1xf32>
  %y = tile.reduce<sum> %x, 0 : tensor<4xf32> -> tensor<1xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: folding axis 0 of tensor<4xf32> does not give tensor<f64>
  %y = tile.reduce<sum> %x, 0 : tensor<4xf32> -> tensor<f64>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: '>' expected
  %y = tile.reduce<sum, max> %x, 0 : tensor<4xf32> -> tensor<f32>
  tile.return
}
