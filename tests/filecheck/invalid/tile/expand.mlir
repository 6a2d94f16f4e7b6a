tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: axis 2 is out of range for rank 2
  %y = tile.expand %x, 2 : tensor<4xf32> -> tensor<4x1xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: inserting axis 0 into tensor<4xf32> does not give tensor<4x1xf32>
  %y = tile.expand %x, 0 : tensor<4xf32> -> tensor<4x1xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: the result tensor<1x?xf32> must have constant sizes
  %y = tile.expand %x, 0 : tensor<4xf32> -> tensor<1x?xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: Expected integer literal
  %y = tile.expand %x, [0] : tensor<4xf32> -> tensor<1x4xf32>
  tile.return
}
