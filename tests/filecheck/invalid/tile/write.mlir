tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  %t = tile.read %x[%p] : !tile.view<1, f32, global>, tensor<4xi64> -> tensor<4xf32>
  // expected: 2 tiles of places for a view of rank 1
  tile.write %t, %x[%p, %p] : tensor<4xf32>, !tile.view<1, f32, global>, tensor<4xi64>, tensor<4xi64>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  %t = tile.read %x[%p] : !tile.view<1, f32, global>, tensor<4xi64> -> tensor<4xf32>
  %q = tile.iota %i, 0 : tensor<8xi64>
  // expected: places are i64 tiles of the tile's sizes, tensor<4xf32>, not tensor<8xi64>
  tile.write %t, %x[%q] : tensor<4xf32>, !tile.view<1, f32, global>, tensor<8xi64>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  // expected: the view holds f32, the tile i64
  tile.write %p, %x[%p] : tensor<4xi64>, !tile.view<1, f32, global>, tensor<4xi64>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  %t = tile.read %x[%p] : !tile.view<1, f32, global>, tensor<4xi64> -> tensor<4xf32>
  // expected: the mask is an i1 tile of the tile's sizes, tensor<4xf32>, not tensor<4xf32>
  tile.write %t, %x[%p] mask %t : tensor<4xf32> : tensor<4xf32>, !tile.view<1, f32, global>, tensor<4xi64>
  tile.return
}
