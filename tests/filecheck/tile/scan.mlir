// RUN: tessera opt %s | filecheck %s
// Running reductions keep the type.
tile.func @f(%b: i1, %u: ui8) outputs 0 shapes [[], []] grid [1] {
  %one = arith.constant 1.0 : bf16
  %x = tile.full %one : tensor<16x72xbf16>
  %sum = tile.scan<sum> %x, 1 : tensor<16x72xbf16> -> tensor<16x72xbf16>
  %max = tile.scan<max> %sum, 0 {k} : tensor<16x72xbf16> -> tensor<16x72xbf16>
  %bytes = tile.full %u : tensor<5xui8>
  %xor = tile.scan<xor> %bytes, 0 : tensor<5xui8> -> tensor<5xui8>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%b: i1, %u: ui8) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %one = arith.constant 1.000000e+00 : bf16
// CHECK-NEXT:     %x = tile.full %one : tensor<16x72xbf16>
// CHECK-NEXT:     %sum = tile.scan<sum> %x, 1 : tensor<16x72xbf16> -> tensor<16x72xbf16>
// CHECK-NEXT:     %max = tile.scan<max> %sum, 0 {k} : tensor<16x72xbf16> -> tensor<16x72xbf16>
// CHECK-NEXT:     %bytes = tile.full %u : tensor<5xui8>
// CHECK-NEXT:     %xor = tile.scan<xor> %bytes, 0 : tensor<5xui8> -> tensor<5xui8>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
