// RUN: tessera opt %s -p promote-accumulators{depth=64} | filecheck %s
// Two iterations share an accumulator; one that is left over has its own.
tile.func @k(%a: !tile.view<2, f8E4M3FN, global>, %b: !tile.view<2, f8E4M3FN, global>, %c: !tile.view<2, f32, global>) outputs 1 shapes [[16, K], [K, 8], [16, 8]] grid [1] {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %depth = tile.dim %a, 1 : !tile.view<2, f8E4M3FN, global>
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<16x8xf32>
  %sums = scf.for %k = %c0 to %depth step %c32 iter_args(%acc = %start) -> (tensor<16x8xf32>) {
    %left = tile.load %a[%c0, %k] : !tile.view<2, f8E4M3FN, global> -> tensor<16x32xf8E4M3FN>
    %right = tile.load %b[%k, %c0] : !tile.view<2, f8E4M3FN, global> -> tensor<32x8xf8E4M3FN>
    %next = tile.dot %left, %right, %acc : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
    scf.yield %next : tensor<16x8xf32>
  }
  tile.store %sums, %c[%c0, %c0] : tensor<16x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @k(%a: !tile.view<2, f8E4M3FN, global>, %b: !tile.view<2, f8E4M3FN, global>, %c: !tile.view<2, f32, global>) outputs 1 shapes [[16, K], [K, 8], [16, 8]] grid [1] {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c32 = arith.constant 32 : index
// CHECK-NEXT:     %depth = tile.dim %a, 1 : !tile.view<2, f8E4M3FN, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %start = tile.full %nothing : tensor<16x8xf32>
// CHECK-NEXT:     %0 = arith.constant 64 : index
// CHECK-NEXT:     %1 = arith.remsi %depth, %0 : index
// CHECK-NEXT:     %2 = arith.subi %depth, %1 : index
// CHECK-NEXT:     %3 = scf.for %k = %c0 to %2 step %0 iter_args(%acc = %start) -> (tensor<16x8xf32>) {
// CHECK-NEXT:       %left = tile.load %a[%c0, %k] : !tile.view<2, f8E4M3FN, global> -> tensor<16x32xf8E4M3FN>
// CHECK-NEXT:       %right = tile.load %b[%k, %c0] : !tile.view<2, f8E4M3FN, global> -> tensor<32x8xf8E4M3FN>
// CHECK-NEXT:       %4 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       %5 = tile.full %4 : tensor<16x8xf32>
// CHECK-NEXT:       %next = tile.dot %left, %right, %5 : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %6 = arith.addi %k, %c32 : index
// CHECK-NEXT:       %left_1 = tile.load %a[%c0, %6] : !tile.view<2, f8E4M3FN, global> -> tensor<16x32xf8E4M3FN>
// CHECK-NEXT:       %right_1 = tile.load %b[%6, %c0] : !tile.view<2, f8E4M3FN, global> -> tensor<32x8xf8E4M3FN>
// CHECK-NEXT:       %next_1 = tile.dot %left_1, %right_1, %next : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %next_2 = tile.ew<add> %acc, %next_1 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       scf.yield %next_2 : tensor<16x8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %sums = scf.for %k_1 = %2 to %depth step %c32 iter_args(%acc_1 = %3) -> (tensor<16x8xf32>) {
// CHECK-NEXT:       %left_2 = tile.load %a[%c0, %k_1] : !tile.view<2, f8E4M3FN, global> -> tensor<16x32xf8E4M3FN>
// CHECK-NEXT:       %right_2 = tile.load %b[%k_1, %c0] : !tile.view<2, f8E4M3FN, global> -> tensor<32x8xf8E4M3FN>
// CHECK-NEXT:       %7 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       %8 = tile.full %7 : tensor<16x8xf32>
// CHECK-NEXT:       %next_3 = tile.dot %left_2, %right_2, %8 : tensor<16x32xf8E4M3FN>, tensor<32x8xf8E4M3FN>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %next_4 = tile.ew<add> %acc_1, %next_3 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       scf.yield %next_4 : tensor<16x8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.store %sums, %c[%c0, %c0] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
