// RUN: tessera opt %s -p promote-accumulators{depth=32} | filecheck %s
// Only the first dot loses bits of its accumulator: the second starts at zero, the third was declared narrower.
tile.func @k(%a: !tile.view<2, f8E4M3FN, global>, %b: !tile.view<2, f8E4M3FN, global>, %c: !tile.view<2, f32, global>) outputs 1 shapes [[16, K], [K, 8], [16, 8]] grid [1] {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %depth = tile.dim %a, 1 : !tile.view<2, f8E4M3FN, global>
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<16x8xf32>
  %sums, %loose = scf.for %k = %c0 to %depth step %c32 iter_args(%acc = %start, %other = %start) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
    %left = tile.load %a[%c0, %k] : !tile.view<2, f8E4M3FN, global> -> tensor<16x32xf8E4M3FN>
    %right = tile.load %b[%k, %c0] : !tile.view<2, f8E4M3FN, global> -> tensor<32x8xf8E4M3FN>
    %next = tile.dot %left, %right, %acc : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
    %one = tile.dot %left, %right, %start : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
    %two = tile.dot %left, %right, %other in f16 : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
    %both = tile.ew<add> %one, %two : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    scf.yield %next, %both : tensor<16x8xf32>, tensor<16x8xf32>
  }
  %all = tile.ew<add> %sums, %loose : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  tile.store %all, %c[%c0, %c0] : tensor<16x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @k(%a: !tile.view<2, f8E4M3FN, global>, %b: !tile.view<2, f8E4M3FN, global>, %c: !tile.view<2, f32, global>) outputs 1 shapes [[16, K], [K, 8], [16, 8]] grid [1] {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c32 = arith.constant 32 : index
// CHECK-NEXT:     %depth = tile.dim %a, 1 : !tile.view<2, f8E4M3FN, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %start = tile.full %nothing : tensor<16x8xf32>
// CHECK-NEXT:     %sums, %loose = scf.for %k = %c0 to %depth step %c32 iter_args(%acc = %start, %other = %start) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
// CHECK-NEXT:       %left = tile.load %a[%c0, %k] : !tile.view<2, f8E4M3FN, global> -> tensor<16x32xf8E4M3FN>
// CHECK-NEXT:       %right = tile.load %b[%k, %c0] : !tile.view<2, f8E4M3FN, global> -> tensor<32x8xf8E4M3FN>
// CHECK-NEXT:       %0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       %1 = tile.full %0 : tensor<16x8xf32>
// CHECK-NEXT:       %next = tile.dot %left, %right, %1 : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %next_1 = tile.ew<add> %acc, %next : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %one = tile.dot %left, %right, %start : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %two = tile.dot %left, %right, %other in f16 : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %both = tile.ew<add> %one, %two : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       scf.yield %next_1, %both : tensor<16x8xf32>, tensor<16x8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %all = tile.ew<add> %sums, %loose : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:     tile.store %all, %c[%c0, %c0] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
