// RUN: tessera opt %s | filecheck %s
// Elements of a tile in a buffer; one of one axis lies along a row.
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xf32>
  %p = tile.iota %i, 0 : tensor<4x16xi64>
  %two = cpu.take %b[%p, %p] of [8, 40] : !cpu.buffer<8x40xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16xf32>
  %one = cpu.take %b[%p] of [40] {k} : !cpu.buffer<8x40xf32>, tensor<4x16xi64> -> tensor<4x16xf32>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%i: index) shapes [[]] grid [1] {
// CHECK-NEXT:     %b = cpu.buffer : !cpu.buffer<8x40xf32>
// CHECK-NEXT:     %p = tile.iota %i, 0 : tensor<4x16xi64>
// CHECK-NEXT:     %two = cpu.take %b[%p, %p] of [8, 40] : !cpu.buffer<8x40xf32>, tensor<4x16xi64>, tensor<4x16xi64> -> tensor<4x16xf32>
// CHECK-NEXT:     %one = cpu.take %b[%p] of [40] {k} : !cpu.buffer<8x40xf32>, tensor<4x16xi64> -> tensor<4x16xf32>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
