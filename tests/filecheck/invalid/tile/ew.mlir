tile.func @f() outputs 0 shapes [] grid [1] {
  // expected: an elementwise op has at least one operand
  %y = tile.ew<add> : -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: operands and result have one shape; tensor<4xf32> and tensor<5xf32> differ: expand and broadcast
  %y = tile.ew<exp> %x : tensor<4xf32> -> tensor<5xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: 'twist' is not an elementwise function
  %y = tile.ew<twist> %x : tensor<4xf32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: select expects a bool and two operands of one type
  %y = tile.ew<select> %x, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: lt of f32, f32 gives bool, not f32
  %y = tile.ew<lt> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: stochastic rounding needs a seed
  %y = tile.ew<cast> %x policy <stochastic_round> : tensor<4xf32> -> tensor<4xbf16>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: the loss scale must be a power of two
  %y = tile.ew<cast> %x policy <loss_scale(3)> : tensor<4xf32> -> tensor<4xbf16>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: stochastic rounding is defined for float types
  %y = tile.ew<cast> %x policy <stochastic_round> seed 1 : tensor<4xf32> -> tensor<4xi8>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: the result tensor<?xf32> must have constant sizes
  %y = tile.ew<exp> %x : tensor<4xf32> -> tensor<?xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: f80 is not a Tessera element type
  %y = tile.ew<cast> %x : tensor<4xf32> -> tensor<4xf80>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: property 'zeal' is not defined by the operation 'tile.ew'
  %y = "tile.ew"(%x) <{fn = #ts.name<exp>, zeal = 4 : i32}> : (tensor<4xf32>) -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: expected 1 operand types but had 2
  %y = tile.ew<add> %x, %x : tensor<4xf32> -> tensor<4xf32>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // expected: '(' expected
  %y = tile.ew<cast> %x policy <accum> : tensor<4xf32> -> tensor<4xbf16>
  tile.return
}
// -----
tile.func @f(%c: f32) outputs 0 shapes [[]] grid [1] {
  %x = tile.full %c : tensor<4xf32>
  // The seed comes behind the policy.
  // expected: Expected ':'
  %y = tile.ew<cast> %x seed 1 policy <saturate> : tensor<4xf32> -> tensor<4xbf16>
  tile.return
}
