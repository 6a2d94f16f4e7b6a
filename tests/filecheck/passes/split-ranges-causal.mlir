// RUN: tessera opt %s -p split-ranges | filecheck %s
// Iterations in which the mask is true all over are a loop without it; the other one goes on where that ends.
tile.func @f(%q: !tile.view<2, f32, global>, %k: !tile.view<2, f32, global>, %row: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 4], [N, 4], [], [4, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %n = tile.dim %k, 0 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<4x8xf32>
  %a = tile.load %q[%row, %zero] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %clear) -> (tensor<4x8xf32>) {
    %b = tile.load %k[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
    %c = tile.trans %b, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %d = tile.dot %a, %c, %clear : tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %down = tile.iota %row, 0 : tensor<4x8xi64>
    %across = tile.iota %i, 1 : tensor<4x8xi64>
    %mask = tile.ew<ge> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
    %e = tile.ew<select> %mask, %d, %clear : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %next = tile.ew<add> %acc, %e : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    scf.yield %next : tensor<4x8xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<4x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%q: !tile.view<2, f32, global>, %k: !tile.view<2, f32, global>, %row: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 4], [N, 4], [], [4, 8]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %eight = arith.constant 8 : index
// CHECK-NEXT:     %n = tile.dim %k, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<4x8xf32>
// CHECK-NEXT:     %a = tile.load %q[%row, %zero] : !tile.view<2, f32, global> -> tensor<4x4xf32>
// CHECK-NEXT:     %0 = arith.constant -6 : index
// CHECK-NEXT:     %1 = arith.addi %row, %0 : index
// CHECK-NEXT:     %2 = arith.minsi %n, %1 : index
// CHECK-NEXT:     %3 = arith.subi %2, %zero : index
// CHECK-NEXT:     %4 = arith.constant 0 : index
// CHECK-NEXT:     %5 = arith.maxsi %3, %4 : index
// CHECK-NEXT:     %6 = arith.ceildivsi %5, %eight : index
// CHECK-NEXT:     %7 = arith.muli %6, %eight : index
// CHECK-NEXT:     %8 = arith.addi %zero, %7 : index
// CHECK-NEXT:     %sum = scf.for %i = %zero to %2 step %eight iter_args(%acc = %clear) -> (tensor<4x8xf32>) {
// CHECK-NEXT:       %b = tile.load %k[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
// CHECK-NEXT:       %c = tile.trans %b, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %d = tile.dot %a, %c, %clear : tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %down = tile.iota %row, 0 : tensor<4x8xi64>
// CHECK-NEXT:       %across = tile.iota %i, 1 : tensor<4x8xi64>
// CHECK-NEXT:       %mask = tile.ew<ge> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
// CHECK-NEXT:       %next = tile.ew<add> %acc, %d : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       scf.yield %next : tensor<4x8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %sum_1 = scf.for %i_1 = %8 to %n step %eight iter_args(%acc_1 = %sum) -> (tensor<4x8xf32>) {
// CHECK-NEXT:       %b_1 = tile.load %k[%i_1, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
// CHECK-NEXT:       %c_1 = tile.trans %b_1, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %d_1 = tile.dot %a, %c_1, %clear : tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %down_1 = tile.iota %row, 0 : tensor<4x8xi64>
// CHECK-NEXT:       %across_1 = tile.iota %i_1, 1 : tensor<4x8xi64>
// CHECK-NEXT:       %mask_1 = tile.ew<ge> %down_1, %across_1 : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
// CHECK-NEXT:       %e = tile.ew<select> %mask_1, %d_1, %clear : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %next_1 = tile.ew<add> %acc_1, %e : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       scf.yield %next_1 : tensor<4x8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.store %sum_1, %y[%zero, %zero] : tensor<4x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
