tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4x4xf32>
  // expected: the result has the type of c, tensor<4x4xf32>, not tensor<4x4xf64>
  %y = tile.dot %x, %x, %x : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf64>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4x3xf32>
  // expected: dot of tensor<4x3xf32> and tensor<4x3xf32> into tensor<4x3xf32>: expected [M, K], [K, N] and [M, N]
  %y = tile.dot %x, %x, %x : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: expected [M, K], [K, N] and [M, N]
  %y = tile.dot %x, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32, %h: f16) outputs 0 shapes [[], []] grid [1] {
  %x = tile.full %c : tensor<4x4xf32>
  %z = tile.full %h : tensor<4x4xf16>
  // expected: dot of f32 and f16 into f32: expected equal operands and a sum of their kind, no narrower
  %y = tile.dot %x, %z, %x : tensor<4x4xf32>, tensor<4x4xf16>, tensor<4x4xf32> -> tensor<4x4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32, %h: f16) outputs 0 shapes [[], []] grid [1] {
  %x = tile.full %c : tensor<4x4xf32>
  %z = tile.full %h : tensor<4x4xf16>
  // expected: dot of f32 and f32 into f16: expected equal operands and a sum of their kind, no narrower
  %y = tile.dot %x, %x, %z : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf16> -> tensor<4x4xf16>
  tile.return
}
// -----
tile.func @f(%c: i8, %h: f32) outputs 0 shapes [[], []] grid [1] {
  %x = tile.full %c : tensor<4x4xi8>
  %z = tile.full %h : tensor<4x4xf32>
  // expected: dot of i8 and i8 into f32: expected equal operands and a sum of their kind, no narrower
  %y = tile.dot %x, %x, %z : tensor<4x4xi8>, tensor<4x4xi8>, tensor<4x4xf32> -> tensor<4x4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4x4xf32>
  // expected: Expected ','
  %y = tile.dot %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4x4xf32>
  // expected: an accumulator of f32 is not carried in i32
  %y = tile.dot %x, %x, %x in i32 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<2x4x4xf32>
  %z = tile.full %c : tensor<3x4x4xf32>
  // expected: dot of tensor<2x4x4xf32> and tensor<3x4x4xf32> into tensor<2x4x4xf32>: expected [M, K], [K, N] and [M, N], behind equal leading axes
  %y = tile.dot %x, %z, %x : tensor<2x4x4xf32>, tensor<3x4x4xf32>, tensor<2x4x4xf32> -> tensor<2x4x4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<2x4x4xf32>
  %z = tile.full %c : tensor<4x4xf32>
  // expected: behind equal leading axes
  %y = tile.dot %x, %z, %x : tensor<2x4x4xf32>, tensor<4x4xf32>, tensor<2x4x4xf32> -> tensor<2x4x4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<2x4x3xf32>
  // expected: behind equal leading axes
  %y = tile.dot %x, %x, %x : tensor<2x4x3xf32>, tensor<2x4x3xf32>, tensor<2x4x3xf32> -> tensor<2x4x3xf32>
  tile.return
}
