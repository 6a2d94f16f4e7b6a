tile.func @f(%x: !tile.view<1, f32, global>, %i: index, %c: f32) outputs 0 shapes [[N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: unknown reduction exchange
  tile.atomic<exchange> %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index, %c: f32) outputs 0 shapes [[N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: or reduces bool or int or uint elements, got f32
  tile.atomic<or> %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f32, global>, %i: index, %c: f32) outputs 0 shapes [[M, N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: 1 offsets and a tile of rank 1 for a view of rank 2
  tile.atomic<sum> %t, %x[%i] : tensor<4xf32>, !tile.view<2, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, i8, global>, %i: index, %c: f32) outputs 0 shapes [[N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: the view holds i8, the tile f32
  tile.atomic<sum> %t, %x[%i] : tensor<4xf32>, !tile.view<1, i8, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index, %c: f32) outputs 0 shapes [[N], [], []] grid [1] {
  %t = tile.full %c : tensor<4xf32>
  // expected: '<' expected
  tile.atomic sum %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
