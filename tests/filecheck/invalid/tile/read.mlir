tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  // expected: 1 tiles of places for a view of rank 2
  %t = tile.read %x[%p] : !tile.view<2, f32, global>, tensor<4xi64> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<0, f32, global>) outputs 0 shapes [[]] grid [1] {
  // expected: 0 tiles of places for a view of rank 0
  %t = tile.read %x[] : !tile.view<0, f32, global>, -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi32>
  // expected: places are i64 tiles of the result's sizes, tensor<4xf32>, not tensor<4xi32>
  %t = tile.read %x[%p] : !tile.view<1, f32, global>, tensor<4xi32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  // expected: places are i64 tiles of the result's sizes, tensor<8xf32>, not tensor<4xi64>
  %t = tile.read %x[%p] : !tile.view<1, f32, global>, tensor<4xi64> -> tensor<8xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  // expected: the view holds f32, the tile bf16
  %t = tile.read %x[%p] : !tile.view<1, f32, global>, tensor<4xi64> -> tensor<4xbf16>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  // expected: the mask is an i1 tile of the result's sizes, tensor<4xf32>, not tensor<4xi64>
  %t = tile.read %x[%p] mask %p : tensor<4xi64> : !tile.view<1, f32, global>, tensor<4xi64> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  %p = tile.iota %i, 0 : tensor<4xi64>
  %q = tile.iota %i, 0 : tensor<8xi64>
  %m = tile.ew<lt> %q, %q : tensor<8xi64>, tensor<8xi64> -> tensor<8xi1>
  // expected: the mask is an i1 tile of the result's sizes, tensor<4xf32>, not tensor<8xi1>
  %t = tile.read %x[%p] mask %m : tensor<8xi1> : !tile.view<1, f32, global>, tensor<4xi64> -> tensor<4xf32>
  tile.return
}
