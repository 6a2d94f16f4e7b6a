tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  // expected: axis 1 is out of range for rank 1
  %t = tile.iota %i, 1 : tensor<4xi32>
  tile.return
}
// -----
tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  // expected: iota counts in an integer type, got f32
  %t = tile.iota %i, 0 : tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  // expected: the result tensor<?xi32> must have constant sizes
  %t = tile.iota %i, 0 : tensor<?xi32>
  tile.return
}
// -----
tile.func @f(%i: i32) outputs 0 shapes [[]] grid [1] {
  // expected: operand is used with type index
  %t = tile.iota %i, 0 : tensor<4xi32>
  tile.return
}
// -----
tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  // expected: Expected ','
  %t = tile.iota %i : tensor<4xi32>
  tile.return
}
