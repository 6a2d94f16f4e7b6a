tile.func @f(%x: !tile.view<2, i32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: 1 offsets for a view of rank 2
  %t = tile.item %x[%i] : !tile.view<2, i32, global> -> i32
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, i32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: an item is a signed integer of whole bytes, as the view has it, not i32
  %t = tile.item %x[%i] : !tile.view<1, i32, global> -> i64
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: an item is a signed integer of whole bytes, as the view has it, not f32
  %t = tile.item %x[%i] : !tile.view<1, f32, global> -> f32
  tile.return
}
