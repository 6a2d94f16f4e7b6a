// RUN: tessera opt %s -p expand-scans | filecheck %s
// Two steps sum up three elements.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[2, 3], [2, 3]] grid [1] {
  %zero = arith.constant 0 : index
  %rows = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<2x3xf32>
  %sums = tile.scan<sum> %rows, 1 : tensor<2x3xf32> -> tensor<2x3xf32>
  tile.store %sums, %y[%zero, %zero] : tensor<2x3xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[2, 3], [2, 3]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %rows = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<2x3xf32>
// CHECK-NEXT:     %sums = arith.constant 0 : index
// CHECK-NEXT:     %sums_1 = tile.iota %sums, 0 : tensor<2x3xi64>
// CHECK-NEXT:     %sums_2 = tile.iota %sums, 1 : tensor<2x3xi64>
// CHECK-NEXT:     %sums_3 = arith.constant 1 : i64
// CHECK-NEXT:     %sums_4 = tile.full %sums_3 : tensor<2x3xi64>
// CHECK-NEXT:     %sums_5 = tile.ew<lt> %sums_2, %sums_4 : tensor<2x3xi64>, tensor<2x3xi64> -> tensor<2x3xi1>
// CHECK-NEXT:     %sums_6 = tile.ew<sub> %sums_2, %sums_4 : tensor<2x3xi64>, tensor<2x3xi64> -> tensor<2x3xi64>
// CHECK-NEXT:     %sums_7 = tile.take %rows[%sums_1, %sums_6] : tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x3xi64> -> tensor<2x3xf32>
// CHECK-NEXT:     %sums_8 = tile.ew<add> %sums_7, %rows : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:     %sums_9 = tile.ew<select> %sums_5, %rows, %sums_8 : tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:     %sums_10 = arith.constant 2 : i64
// CHECK-NEXT:     %sums_11 = tile.full %sums_10 : tensor<2x3xi64>
// CHECK-NEXT:     %sums_12 = tile.ew<lt> %sums_2, %sums_11 : tensor<2x3xi64>, tensor<2x3xi64> -> tensor<2x3xi1>
// CHECK-NEXT:     %sums_13 = tile.ew<sub> %sums_2, %sums_11 : tensor<2x3xi64>, tensor<2x3xi64> -> tensor<2x3xi64>
// CHECK-NEXT:     %sums_14 = tile.take %sums_9[%sums_1, %sums_13] : tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x3xi64> -> tensor<2x3xf32>
// CHECK-NEXT:     %sums_15 = tile.ew<add> %sums_14, %sums_9 : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:     %sums_16 = tile.ew<select> %sums_12, %sums_9, %sums_15 : tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT:     tile.store %sums_16, %y[%zero, %zero] : tensor<2x3xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
