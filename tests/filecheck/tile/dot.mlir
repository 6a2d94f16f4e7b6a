// RUN: tessera opt %s | filecheck %s
// Leading axes number products. Narrow operands, a sum of the same kind that is no narrower; sizes need not be powers of two.
tile.func @f(%i: i4, %w: i32) outputs 0 shapes [[], []] grid [1] {
  %one = arith.constant 1.0 : bf16
  %zero = arith.constant 0.0 : f32
  %a = tile.full %one : tensor<16x80xbf16>
  %b = tile.full %one : tensor<80x72xbf16>
  %c = tile.full %zero : tensor<16x72xf32>
  %wide = tile.dot %a, %b, %c : tensor<16x80xbf16>, tensor<80x72xbf16>, tensor<16x72xf32> -> tensor<16x72xf32>
  %loose = tile.dot %a, %b, %c in f16 : tensor<16x80xbf16>, tensor<80x72xbf16>, tensor<16x72xf32> -> tensor<16x72xf32>
  %n = tile.full %i : tensor<4x4xi4>
  %s = tile.full %w : tensor<4x4xi32>
  %whole = tile.dot %n, %n, %s {k} : tensor<4x4xi4>, tensor<4x4xi4>, tensor<4x4xi32> -> tensor<4x4xi32>
  %same = tile.dot %n, %n, %n : tensor<4x4xi4>, tensor<4x4xi4>, tensor<4x4xi4> -> tensor<4x4xi4>
  %left = tile.full %one : tensor<2x0xbf16>
  %right = tile.full %one : tensor<0x3xbf16>
  %start = tile.full %one : tensor<2x3xbf16>
  %nothing_summed = tile.dot %left, %right, %start : tensor<2x0xbf16>, tensor<0x3xbf16>, tensor<2x3xbf16> -> tensor<2x3xbf16>
  %several = tile.full %one : tensor<4x2x8xbf16>
  %turned = tile.full %one : tensor<4x8x3xbf16>
  %each = tile.full %zero : tensor<4x2x3xf32>
  %products = tile.dot %several, %turned, %each : tensor<4x2x8xbf16>, tensor<4x8x3xbf16>, tensor<4x2x3xf32> -> tensor<4x2x3xf32>
  %many = tile.full %w : tensor<2x5x3x3xi32>
  %squares = tile.dot %many, %many, %many : tensor<2x5x3x3xi32>, tensor<2x5x3x3xi32>, tensor<2x5x3x3xi32> -> tensor<2x5x3x3xi32>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%i: i4, %w: i32) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %one = arith.constant 1.000000e+00 : bf16
// CHECK-NEXT:     %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %a = tile.full %one : tensor<16x80xbf16>
// CHECK-NEXT:     %b = tile.full %one : tensor<80x72xbf16>
// CHECK-NEXT:     %c = tile.full %zero : tensor<16x72xf32>
// CHECK-NEXT:     %wide = tile.dot %a, %b, %c : tensor<16x80xbf16>, tensor<80x72xbf16>, tensor<16x72xf32> -> tensor<16x72xf32>
// CHECK-NEXT:     %loose = tile.dot %a, %b, %c in f16 : tensor<16x80xbf16>, tensor<80x72xbf16>, tensor<16x72xf32> -> tensor<16x72xf32>
// CHECK-NEXT:     %n = tile.full %i : tensor<4x4xi4>
// CHECK-NEXT:     %s = tile.full %w : tensor<4x4xi32>
// CHECK-NEXT:     %whole = tile.dot %n, %n, %s {k} : tensor<4x4xi4>, tensor<4x4xi4>, tensor<4x4xi32> -> tensor<4x4xi32>
// CHECK-NEXT:     %same = tile.dot %n, %n, %n : tensor<4x4xi4>, tensor<4x4xi4>, tensor<4x4xi4> -> tensor<4x4xi4>
// CHECK-NEXT:     %left = tile.full %one : tensor<2x0xbf16>
// CHECK-NEXT:     %right = tile.full %one : tensor<0x3xbf16>
// CHECK-NEXT:     %start = tile.full %one : tensor<2x3xbf16>
// CHECK-NEXT:     %nothing_summed = tile.dot %left, %right, %start : tensor<2x0xbf16>, tensor<0x3xbf16>, tensor<2x3xbf16> -> tensor<2x3xbf16>
// CHECK-NEXT:     %several = tile.full %one : tensor<4x2x8xbf16>
// CHECK-NEXT:     %turned = tile.full %one : tensor<4x8x3xbf16>
// CHECK-NEXT:     %each = tile.full %zero : tensor<4x2x3xf32>
// CHECK-NEXT:     %products = tile.dot %several, %turned, %each : tensor<4x2x8xbf16>, tensor<4x8x3xbf16>, tensor<4x2x3xf32> -> tensor<4x2x3xf32>
// CHECK-NEXT:     %many = tile.full %w : tensor<2x5x3x3xi32>
// CHECK-NEXT:     %squares = tile.dot %many, %many, %many : tensor<2x5x3x3xi32>, tensor<2x5x3x3xi32>, tensor<2x5x3x3xi32> -> tensor<2x5x3x3xi32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
