tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: any looks at a tile of i1, not tensor<4xf32>
  %y = tile.any %x : tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%b: i1) outputs 0 shapes [[]] grid [1] {
  // expected: i1 should be of base attribute tensor
  %y = tile.any %b : i1
  tile.return
}
