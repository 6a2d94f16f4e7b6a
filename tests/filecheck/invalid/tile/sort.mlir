tile.func @f(%c: i32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xi32>
  // expected: axis 1 is out of range for rank 1
  %y = tile.sort %x, 1 : tensor<4xi32> -> tensor<4xi32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: whole numbers of 8 bits or more are sorted, not f32; floats have keys
  %y = tile.sort %x, 0 : tensor<4xf32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: i32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xi32>
  // expected: sorting axis 0 of tensor<4xi32> does not give tensor<4xi64>
  %y = tile.sort %x, 0 : tensor<4xi32> -> tensor<4xi64>
  tile.return
}
