// RUN: tessera opt %s | filecheck %s
// Elements of a tile at computed places, one tile of places to each of its axes.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
  %t = tile.load %x[%i, %i] : !tile.view<2, bf16, global> -> tensor<8x16xbf16>
  %p = tile.iota %i, 0 : tensor<4x72xi64>
  %q = tile.iota %i, 1 : tensor<4x72xi64>
  %two = tile.take %t[%p, %q] : tensor<8x16xbf16>, tensor<4x72xi64>, tensor<4x72xi64> -> tensor<4x72xbf16>
  %one = tile.take %q[%p, %q] {k} : tensor<4x72xi64>, tensor<4x72xi64>, tensor<4x72xi64> -> tensor<4x72xi64>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] {
// CHECK-NEXT:     %t = tile.load %x[%i, %i] : !tile.view<2, bf16, global> -> tensor<8x16xbf16>
// CHECK-NEXT:     %p = tile.iota %i, 0 : tensor<4x72xi64>
// CHECK-NEXT:     %q = tile.iota %i, 1 : tensor<4x72xi64>
// CHECK-NEXT:     %two = tile.take %t[%p, %q] : tensor<8x16xbf16>, tensor<4x72xi64>, tensor<4x72xi64> -> tensor<4x72xbf16>
// CHECK-NEXT:     %one = tile.take %q[%p, %q] {k} : tensor<4x72xi64>, tensor<4x72xi64>, tensor<4x72xi64> -> tensor<4x72xi64>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
