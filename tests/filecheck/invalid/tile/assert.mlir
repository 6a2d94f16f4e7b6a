tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  // expected: assert needs an i1 or a tile of i1, got f32
  tile.assert %c, "holds" : f32
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: assert needs an i1 or a tile of i1, got tensor<4xf32>
  tile.assert %x, "holds" : tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: i1) outputs 0 shapes [[]] grid [1] {
  // expected: unit should be of base attribute string
  tile.assert %c, unit : i1
  tile.return
}
// -----
tile.func @f(%c: i1) outputs 0 shapes [[]] grid [1] {
  // expected: Expected ','
  tile.assert %c : i1
  tile.return
}
