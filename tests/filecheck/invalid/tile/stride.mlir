tile.func @f(%x: !tile.view<0, f32, global>) outputs 0 shapes [[]] grid [1] {
  // expected: axis 0 is out of range for rank 0
  %n = tile.stride %x, 0 : !tile.view<0, f32, global>
  tile.return
}
// -----
tile.func @f(%x: tensor<4xf32>) outputs 0 shapes [[]] grid [1] {
  // expected: tensor<4xf32> should be of base attribute tile.view
  %n = tile.stride %x, 0 : tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  // expected: Expected integer literal
  %n = tile.stride %x, last : !tile.view<1, f32, global>
  tile.return
}
