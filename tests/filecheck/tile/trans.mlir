// RUN: tessera opt %s | filecheck %s
// Result axis i is operand axis permutation[i].
tile.func @f(%u: ui8) outputs 0 shapes [[]] grid [1] {
  %one = arith.constant 1.0 : f8E4M3FN
  %x = tile.full %one : tensor<2x3x5xf8E4M3FN>
  %a = tile.trans %x, [2, 0, 1] : tensor<2x3x5xf8E4M3FN> -> tensor<5x2x3xf8E4M3FN>
  %b = tile.trans %a, [0, 1, 2] {k} : tensor<5x2x3xf8E4M3FN> -> tensor<5x2x3xf8E4M3FN>
  %scalar = tile.full %u : tensor<ui8>
  %c = tile.trans %scalar, [] : tensor<ui8> -> tensor<ui8>
  %empty = tile.full %u : tensor<0x4xui8>
  %d = tile.trans %empty, [1, 0] : tensor<0x4xui8> -> tensor<4x0xui8>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%u: ui8) outputs 0 shapes [[]] grid [1] {
// CHECK-NEXT:     %one = arith.constant 1.000000e+00 : f8E4M3FN
// CHECK-NEXT:     %x = tile.full %one : tensor<2x3x5xf8E4M3FN>
// CHECK-NEXT:     %a = tile.trans %x, [2, 0, 1] : tensor<2x3x5xf8E4M3FN> -> tensor<5x2x3xf8E4M3FN>
// CHECK-NEXT:     %b = tile.trans %a, [0, 1, 2] {k} : tensor<5x2x3xf8E4M3FN> -> tensor<5x2x3xf8E4M3FN>
// CHECK-NEXT:     %scalar = tile.full %u : tensor<ui8>
// CHECK-NEXT:     %c = tile.trans %scalar, [] : tensor<ui8> -> tensor<ui8>
// CHECK-NEXT:     %empty = tile.full %u : tensor<0x4xui8>
// CHECK-NEXT:     %d = tile.trans %empty, [1, 0] : tensor<0x4xui8> -> tensor<4x0xui8>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
