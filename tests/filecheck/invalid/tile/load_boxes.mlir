tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: 3 starts of boxes in !tile.view<2, f32, global>: each has one for every axis
  %t = tile.load_boxes %x[%i, %i, %i] along [0, 1] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: 0 starts of boxes
  %t = tile.load_boxes %x[] along [0, 1] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: axes [1, 0] of !tile.view<2, f32, global>, for tensor<4x4xf32>: expected one for each of its axes, ascending
  %t = tile.load_boxes %x[%i, %i] along [1, 0] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: axes [2] of !tile.view<2, f32, global>, for tensor<4xf32>
  %t = tile.load_boxes %x[%i, %i] along [2] : !tile.view<2, f32, global> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: 2 boxes do not share the rows of tensor<5x4xf32>
  %t = tile.load_boxes %x[%i, %i, %i, %i] along [0, 1] : !tile.view<2, f32, global> -> tensor<5x4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: the view holds f32, the tile bf16
  %t = tile.load_boxes %x[%i, %i] along [0, 1] : !tile.view<2, f32, global> -> tensor<4x4xbf16>
  tile.return
}
