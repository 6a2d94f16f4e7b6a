tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  // expected: axis 1 is out of range for rank 1
  %n = tile.dim %x, 1 : !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  // expected: axis -1 is out of range for rank 1
  %n = tile.dim %x, -1 : !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: f32) outputs 0 shapes [[]] grid [1] {
  // expected: f32 should be of base attribute tile.view
  %n = tile.dim %x, 0 : f32
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  // expected: axis is a property of tile.dim; an attribute may not have its name
  %n = tile.dim %x, 0 {axis = 0 : i64} : !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  // expected: Expected ','
  %n = tile.dim %x 0 : !tile.view<1, f32, global>
  tile.return
}
