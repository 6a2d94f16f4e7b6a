tile.func @f(%x: !tile.view<1, f32, global>, %i: index, %c: f32) outputs 0 shapes [[N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: 2 offsets and a tile of rank 1 for a view of rank 1
  tile.store %t, %x[%i, %i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f64, global>, %i: index, %c: f32) outputs 0 shapes [[N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: the view holds f64, the tile f32
  tile.store %t, %x[%i] : tensor<4xf32>, !tile.view<1, f64, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<0, f32, global>, %c: f32) outputs 0 shapes [[], []] grid [1] {
  // expected: f32 should be of base attribute tensor
  tile.store %c, %x[] : f32, !tile.view<0, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: i64, %c: f32) outputs 0 shapes [[N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: operand is used with type index
  tile.store %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index, %c: f32) outputs 0 shapes [[N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: Expected ','
  tile.store %t, %x[%i] : tensor<4xf32>
  tile.return
}
