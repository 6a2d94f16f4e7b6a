// RUN: tessera opt %s | filecheck %s
// One axis folds away.
tile.func @f(%b: i1, %u: ui8) outputs 0 shapes [[], []] grid [1] {
  %one = arith.constant 1.0 : bf16
  %x = tile.full %one : tensor<16x72xbf16>
  %sum = tile.reduce<sum> %x, 1 : tensor<16x72xbf16> -> tensor<16xbf16>
  %max = tile.reduce<max> %x, 0 {k} : tensor<16x72xbf16> -> tensor<72xbf16>
  %all = tile.reduce<prod> %sum, 0 : tensor<16xbf16> -> tensor<bf16>
  %flags = tile.full %b : tensor<0x3xi1>
  %and = tile.reduce<and> %flags, 0 : tensor<0x3xi1> -> tensor<3xi1>
  %bytes = tile.full %u : tensor<5xui8>
  %xor = tile.reduce<xor> %bytes, 0 : tensor<5xui8> -> tensor<ui8>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%b: i1, %u: ui8) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %one = arith.constant 1.000000e+00 : bf16
// CHECK-NEXT:     %x = tile.full %one : tensor<16x72xbf16>
// CHECK-NEXT:     %sum = tile.reduce<sum> %x, 1 : tensor<16x72xbf16> -> tensor<16xbf16>
// CHECK-NEXT:     %max = tile.reduce<max> %x, 0 {k} : tensor<16x72xbf16> -> tensor<72xbf16>
// CHECK-NEXT:     %all = tile.reduce<prod> %sum, 0 : tensor<16xbf16> -> tensor<bf16>
// CHECK-NEXT:     %flags = tile.full %b : tensor<0x3xi1>
// CHECK-NEXT:     %and = tile.reduce<and> %flags, 0 : tensor<0x3xi1> -> tensor<3xi1>
// CHECK-NEXT:     %bytes = tile.full %u : tensor<5xui8>
// CHECK-NEXT:     %xor = tile.reduce<xor> %bytes, 0 : tensor<5xui8> -> tensor<ui8>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
