tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  // expected: the result tensor<?xf32> must have constant sizes
  %t = tile.full %c : tensor<?xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  // expected: operand is used with type f64
  %t = tile.full %c : tensor<4xf64>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  // expected: vector<4xf32> should be of base attribute tensor
  %t = tile.full %c : vector<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  // expected: tensor<*xf32> should be of base attribute tensor
  %t = tile.full %c : tensor<*xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  // expected: !tile.view<1, f32, global> is not a Tessera element type
  %t = tile.full %x : tensor<4x!tile.view<1, f32, global>>
  tile.return
}
// -----
// xDSL cannot print this number: it is not read, either.
tile.func @f() outputs 0 shapes [] grid [1] {
  // expected: f80 is not a Tessera element type
  %c = arith.constant 1.0 : f80
  %t = tile.full %c : tensor<4xf80>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  // expected: Expected ':'
  %t = tile.full %c, tensor<4xf32>
  tile.return
}
