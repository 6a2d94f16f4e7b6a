// RUN: tessera opt %s -p degenerate-matmuls | filecheck %s
// A dot of one row is a multiplication and sums down the columns, and one of depth 1 is a multiplication alone.
tile.func @f(%x: !tile.view<2, f16, global>, %w: !tile.view<2, f16, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<2, f32, global>) outputs 2 shapes [[1, 16], [16, 8], [1, 8], [16, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %row = tile.load %x[%zero, %zero] : !tile.view<2, f16, global> -> tensor<1x16xf16>
  %weight = tile.load %w[%zero, %zero] : !tile.view<2, f16, global> -> tensor<16x8xf16>
  %clear = tile.full %nothing : tensor<1x8xf32>
  %one = tile.dot %row, %weight, %clear : tensor<1x16xf16>, tensor<16x8xf16>, tensor<1x8xf32> -> tensor<1x8xf32>
  %column = tile.load %w[%zero, %zero] : !tile.view<2, f16, global> -> tensor<16x1xf16>
  %line = tile.load %x[%zero, %zero] : !tile.view<2, f16, global> -> tensor<1x8xf16>
  %empty = tile.full %nothing : tensor<16x8xf32>
  %outer = tile.dot %column, %line, %empty : tensor<16x1xf16>, tensor<1x8xf16>, tensor<16x8xf32> -> tensor<16x8xf32>
  tile.store %one, %y[%zero, %zero] : tensor<1x8xf32>, !tile.view<2, f32, global>
  tile.store %outer, %z[%zero, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f16, global>, %w: !tile.view<2, f16, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<2, f32, global>) outputs 2 shapes [[1, 16], [16, 8], [1, 8], [16, 8]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %row = tile.load %x[%zero, %zero] : !tile.view<2, f16, global> -> tensor<1x16xf16>
// CHECK-NEXT:     %weight = tile.load %w[%zero, %zero] : !tile.view<2, f16, global> -> tensor<16x8xf16>
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<1x8xf32>
// CHECK-NEXT:     %one = tile.trans %row, [1, 0] : tensor<1x16xf16> -> tensor<16x1xf16>
// CHECK-NEXT:     %one_1 = tile.ew<cast> %one : tensor<16x1xf16> -> tensor<16x1xf32>
// CHECK-NEXT:     %one_2 = tile.broadcast %one_1 : tensor<16x1xf32> -> tensor<16x8xf32>
// CHECK-NEXT:     %one_3 = tile.ew<cast> %weight : tensor<16x8xf16> -> tensor<16x8xf32>
// CHECK-NEXT:     %one_4 = tile.ew<mul> %one_2, %one_3 {multiple} : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:     %one_5 = tile.reduce<sum> %one_4, 0 : tensor<16x8xf32> -> tensor<8xf32>
// CHECK-NEXT:     %one_6 = tile.expand %one_5, 0 : tensor<8xf32> -> tensor<1x8xf32>
// CHECK-NEXT:     %one_7 = tile.ew<add> %clear, %one_6 : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK-NEXT:     %column = tile.load %w[%zero, %zero] : !tile.view<2, f16, global> -> tensor<16x1xf16>
// CHECK-NEXT:     %line = tile.load %x[%zero, %zero] : !tile.view<2, f16, global> -> tensor<1x8xf16>
// CHECK-NEXT:     %empty = tile.full %nothing : tensor<16x8xf32>
// CHECK-NEXT:     %outer = tile.ew<cast> %column : tensor<16x1xf16> -> tensor<16x1xf32>
// CHECK-NEXT:     %outer_1 = tile.broadcast %outer : tensor<16x1xf32> -> tensor<16x8xf32>
// CHECK-NEXT:     %outer_2 = tile.ew<cast> %line : tensor<1x8xf16> -> tensor<1x8xf32>
// CHECK-NEXT:     %outer_3 = tile.broadcast %outer_2 : tensor<1x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:     %outer_4 = tile.ew<mul> %outer_1, %outer_3 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:     %outer_5 = tile.ew<add> %empty, %outer_4 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:     tile.store %one_7, %y[%zero, %zero] : tensor<1x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.store %outer_5, %z[%zero, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
