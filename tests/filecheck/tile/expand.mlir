// RUN: tessera opt %s | filecheck %s
// An axis of size 1 appears: in front, in between, behind.
tile.func @f(%u: ui8) outputs 0 shapes [[]] grid [1] {
  %one = arith.constant 1.0 : bf16
  %x = tile.full %one : tensor<16x72xbf16>
  %front = tile.expand %x, 0 : tensor<16x72xbf16> -> tensor<1x16x72xbf16>
  %between = tile.expand %x, 1 : tensor<16x72xbf16> -> tensor<16x1x72xbf16>
  %behind = tile.expand %x, 2 {k} : tensor<16x72xbf16> -> tensor<16x72x1xbf16>
  %scalar = tile.full %u : tensor<ui8>
  %line = tile.expand %scalar, 0 : tensor<ui8> -> tensor<1xui8>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%u: ui8) outputs 0 shapes [[]] grid [1] {
// CHECK-NEXT:     %one = arith.constant 1.000000e+00 : bf16
// CHECK-NEXT:     %x = tile.full %one : tensor<16x72xbf16>
// CHECK-NEXT:     %front = tile.expand %x, 0 : tensor<16x72xbf16> -> tensor<1x16x72xbf16>
// CHECK-NEXT:     %between = tile.expand %x, 1 : tensor<16x72xbf16> -> tensor<16x1x72xbf16>
// CHECK-NEXT:     %behind = tile.expand %x, 2 {k} : tensor<16x72xbf16> -> tensor<16x72x1xbf16>
// CHECK-NEXT:     %scalar = tile.full %u : tensor<ui8>
// CHECK-NEXT:     %line = tile.expand %scalar, 0 : tensor<ui8> -> tensor<1xui8>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
