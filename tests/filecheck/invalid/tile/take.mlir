tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  %p = tile.iota %i, 0 : tensor<4x8xi64>
  %n = tile.iota %i, 0 : tensor<4x8xi32>
  // expected: 1 tiles of places for a tile of rank 2
  %t = tile.take %p[%p] : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi64>
  tile.return
}
// -----
tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  %p = tile.iota %i, 0 : tensor<4x8xi64>
  %n = tile.iota %i, 0 : tensor<4x8xi32>
  // expected: places are i64 tiles of the result's sizes, tensor<4x8xi64>, not tensor<4x8xi32>
  %t = tile.take %p[%p, %n] : tensor<4x8xi64>, tensor<4x8xi64>, tensor<4x8xi32> -> tensor<4x8xi64>
  tile.return
}
// -----
tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  %p = tile.iota %i, 0 : tensor<4x8xi64>
  %n = tile.iota %i, 0 : tensor<4x8xi32>
  // expected: places are i64 tiles of the result's sizes, tensor<2x8xi64>, not tensor<4x8xi64>
  %t = tile.take %p[%p, %p] : tensor<4x8xi64>, tensor<4x8xi64>, tensor<4x8xi64> -> tensor<2x8xi64>
  tile.return
}
// -----
tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  %p = tile.iota %i, 0 : tensor<4x8xi64>
  %n = tile.iota %i, 0 : tensor<4x8xi32>
  // expected: taking elements of tensor<4x8xi64> does not give tensor<4x8xi32>
  %t = tile.take %p[%p, %p] : tensor<4x8xi64>, tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi32>
  tile.return
}
