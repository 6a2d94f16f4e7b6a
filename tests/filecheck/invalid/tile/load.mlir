tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: 1 offsets and a tile of rank 2 for a view of rank 2
  %t = tile.load %x[%i] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f32, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  // expected: 2 offsets and a tile of rank 1 for a view of rank 2
  %t = tile.load %x[%i, %i] : !tile.view<2, f32, global> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: the view holds f32, the tile bf16
  %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xbf16>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: the tile tensor<?xf32> must have constant sizes
  %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<?xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, i8, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: pad 2.5 is not a value of i8
  %t = tile.load %x[%i] pad 2.5 : !tile.view<1, i8, global> -> tensor<4xi8>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, i8, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: pad 128.0 is not a value of i8
  %t = tile.load %x[%i] pad 128.0 : !tile.view<1, i8, global> -> tensor<4xi8>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, ui8, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: pad -1.0 is not a value of ui8
  %t = tile.load %x[%i] pad -1.0 : !tile.view<1, ui8, global> -> tensor<4xui8>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, i8, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: pad inf is not a value of i8
  %t = tile.load %x[%i] pad inf : !tile.view<1, i8, global> -> tensor<4xi8>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: f32 should be of base attribute tensor
  %t = tile.load %x[%i] : !tile.view<1, f32, global> -> f32
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: Expected attribute f64 but got f32
  %t = "tile.load"(%x, %i) <{pad = 1.0 : f32}> : (!tile.view<1, f32, global>, index) -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: integer or float literal expected
  %t = tile.load %x[%i] pad true : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: int too big to convert
  %t = tile.load %x[%i] pad 0x10000000000000000 : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: Expected ']'
  %t = tile.load %x[%i : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: hints are memory, vector, prefetch, swizzle, not cache
  %t = tile.load %x[%i] {tile.hints = #tile.hints<cache = 2>} : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: prefetch is a number from 1 on, not 0
  %t = tile.load %x[%i] {tile.hints = #tile.hints<prefetch = 0>} : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: memory is smem or registers, not l2
  %t = tile.load %x[%i] {tile.hints = #tile.hints<memory = l2>} : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<1, f32, global>, %i: index) outputs 0 shapes [[N], []] grid [1] {
  // expected: swizzle is none or xor, not fast
  %t = tile.load %x[%i] {tile.hints = #tile.hints<swizzle = fast>} : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}
