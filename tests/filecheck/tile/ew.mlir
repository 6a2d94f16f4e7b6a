// RUN: tessera opt %s | filecheck %s
// One row of the table; a policy and a seed are each optional.
tile.func @f(%u: ui8) outputs 0 shapes [[]] grid [1] {
  %zero = arith.constant 0.5 : f32
  %x = tile.full %zero : tensor<16x72xf32>
  %true = arith.constant true
  %b = tile.full %true : tensor<16x72xi1>
  %nibble = arith.constant 7 : i4
  %n = tile.full %nibble : tensor<i4>
  %byte = tile.full %u : tensor<0xui8>
  %unary = tile.ew<exp2> %x : tensor<16x72xf32> -> tensor<16x72xf32>
  %binary = tile.ew<mul> %x, %x : tensor<16x72xf32>, tensor<16x72xf32> -> tensor<16x72xf32>
  %ternary = tile.ew<fma> %x, %x, %x : tensor<16x72xf32>, tensor<16x72xf32>, tensor<16x72xf32> -> tensor<16x72xf32>
  %compare = tile.ew<ge> %x, %x : tensor<16x72xf32>, tensor<16x72xf32> -> tensor<16x72xi1>
  %select = tile.ew<select> %b, %x, %x : tensor<16x72xi1>, tensor<16x72xf32>, tensor<16x72xf32> -> tensor<16x72xf32>
  %narrow = tile.ew<cast> %x : tensor<16x72xf32> -> tensor<16x72xbf16>
  %f8 = tile.ew<cast> %x policy <saturate> : tensor<16x72xf32> -> tensor<16x72xf8E4M3FN>
  %stochastic = tile.ew<cast> %x policy <stochastic_round> seed 7 : tensor<16x72xf32> -> tensor<16x72xbf16>
  %both = tile.ew<cast> %x policy <stochastic_round, accum(f32)> seed -7 {k} : tensor<16x72xf32> -> tensor<16x72xbf16>
  %scaled = tile.ew<cast> %x policy <loss_scale(1048576)> : tensor<16x72xf32> -> tensor<16x72xf16>
  %clamped = tile.ew<add> %n, %n policy <saturate> : tensor<i4>, tensor<i4> -> tensor<i4>
  %plain = tile.ew<neg> %n policy <> : tensor<i4> -> tensor<i4>
  %empty = tile.ew<not> %byte : tensor<0xui8> -> tensor<0xui8>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%u: ui8) outputs 0 shapes [[]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:     %x = tile.full %zero : tensor<16x72xf32>
// CHECK-NEXT:     %true = arith.constant true
// CHECK-NEXT:     %b = tile.full %true : tensor<16x72xi1>
// CHECK-NEXT:     %nibble = arith.constant 7 : i4
// CHECK-NEXT:     %n = tile.full %nibble : tensor<i4>
// CHECK-NEXT:     %byte = tile.full %u : tensor<0xui8>
// CHECK-NEXT:     %unary = tile.ew<exp2> %x : tensor<16x72xf32> -> tensor<16x72xf32>
// CHECK-NEXT:     %binary = tile.ew<mul> %x, %x : tensor<16x72xf32>, tensor<16x72xf32> -> tensor<16x72xf32>
// CHECK-NEXT:     %ternary = tile.ew<fma> %x, %x, %x : tensor<16x72xf32>, tensor<16x72xf32>, tensor<16x72xf32> -> tensor<16x72xf32>
// CHECK-NEXT:     %compare = tile.ew<ge> %x, %x : tensor<16x72xf32>, tensor<16x72xf32> -> tensor<16x72xi1>
// CHECK-NEXT:     %select = tile.ew<select> %b, %x, %x : tensor<16x72xi1>, tensor<16x72xf32>, tensor<16x72xf32> -> tensor<16x72xf32>
// CHECK-NEXT:     %narrow = tile.ew<cast> %x : tensor<16x72xf32> -> tensor<16x72xbf16>
// CHECK-NEXT:     %f8 = tile.ew<cast> %x policy <saturate> : tensor<16x72xf32> -> tensor<16x72xf8E4M3FN>
// CHECK-NEXT:     %stochastic = tile.ew<cast> %x policy <stochastic_round> seed 7 : tensor<16x72xf32> -> tensor<16x72xbf16>
// CHECK-NEXT:     %both = tile.ew<cast> %x policy <accum(f32), stochastic_round> seed -7 {k} : tensor<16x72xf32> -> tensor<16x72xbf16>
// CHECK-NEXT:     %scaled = tile.ew<cast> %x policy <loss_scale(1048576)> : tensor<16x72xf32> -> tensor<16x72xf16>
// CHECK-NEXT:     %clamped = tile.ew<add> %n, %n policy <saturate> : tensor<i4>, tensor<i4> -> tensor<i4>
// CHECK-NEXT:     %plain = tile.ew<neg> %n policy <> : tensor<i4> -> tensor<i4>
// CHECK-NEXT:     %empty = tile.ew<not> %byte : tensor<0xui8> -> tensor<0xui8>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
