tile.func @f(%x: !tile.view<2, i32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: 1 offsets for a view of rank 2
  %t = tile.item %x[%i] : !tile.view<2, i32, global> -> i32
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, i32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: an item of i32 is a scalar of i32, not i64
  %t = tile.item %x[%i] : !tile.view<1, i32, global> -> i64
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, ui16, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: an item of ui16 is a scalar of index, not ui16
  %t = tile.item %x[%i] : !tile.view<1, ui16, global> -> ui16
  tile.return
}
