// RUN: tessera opt %s -p clip-ranges | filecheck %s
// Rows see the columns up to their own, and no more than 16 back: iterations in which no row sees anything are not run.
tile.func @f(%x: !tile.view<2, f32, global>, %row: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [], [4, 1]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %n = tile.dim %x, 1 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<4x8xf32>
  %start = tile.full %nothing : tensor<4x1xf32>
  %far = arith.constant 16 : i64
  %fars = tile.full %far : tensor<4x8xi64>
  %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %start) -> (tensor<4x1xf32>) {
    %a = tile.load %x[%row, %i] : !tile.view<2, f32, global> -> tensor<4x8xf32>
    %down = tile.iota %row, 0 : tensor<4x8xi64>
    %across = tile.iota %i, 1 : tensor<4x8xi64>
    %seen = tile.ew<ge> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
    %distance = tile.ew<sub> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi64>
    %near = tile.ew<lt> %distance, %fars : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
    %mask = tile.ew<and> %seen, %near : tensor<4x8xi1>, tensor<4x8xi1> -> tensor<4x8xi1>
    %b = tile.ew<select> %mask, %a, %clear : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %c = tile.reduce<sum> %b, 1 : tensor<4x8xf32> -> tensor<4xf32>
    %d = tile.expand %c, 1 : tensor<4xf32> -> tensor<4x1xf32>
    %next = tile.ew<add> %acc, %d : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
    scf.yield %next : tensor<4x1xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<4x1xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %row: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [], [4, 1]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %eight = arith.constant 8 : index
// CHECK-NEXT:     %n = tile.dim %x, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<4x8xf32>
// CHECK-NEXT:     %start = tile.full %nothing : tensor<4x1xf32>
// CHECK-NEXT:     %far = arith.constant 16 : i64
// CHECK-NEXT:     %fars = tile.full %far : tensor<4x8xi64>
// CHECK-NEXT:     %0 = arith.constant 4 : index
// CHECK-NEXT:     %1 = arith.addi %row, %0 {tile.rows_end = 1 : i64} : index
// CHECK-NEXT:     %2 = arith.minsi %n, %1 : index
// CHECK-NEXT:     %3 = arith.constant -23 : index
// CHECK-NEXT:     %4 = arith.addi %row, %3 : index
// CHECK-NEXT:     %5 = arith.constant 1 : index
// CHECK-NEXT:     %6 = arith.addi %4, %5 {tile.rows_begin = 1 : i64} : index
// CHECK-NEXT:     %7 = arith.minsi %6, %2 : index
// CHECK-NEXT:     %8 = arith.subi %7, %zero : index
// CHECK-NEXT:     %9 = arith.constant 0 : index
// CHECK-NEXT:     %10 = arith.maxsi %8, %9 : index
// CHECK-NEXT:     %11 = arith.ceildivsi %10, %eight : index
// CHECK-NEXT:     %12 = arith.muli %11, %eight : index
// CHECK-NEXT:     %13 = arith.addi %zero, %12 : index
// CHECK-NEXT:     %sum = scf.for %i = %13 to %2 step %eight iter_args(%acc = %start) -> (tensor<4x1xf32>) {
// CHECK-NEXT:       %a = tile.load %x[%row, %i] : !tile.view<2, f32, global> -> tensor<4x8xf32>
// CHECK-NEXT:       %down = tile.iota %row, 0 : tensor<4x8xi64>
// CHECK-NEXT:       %across = tile.iota %i, 1 : tensor<4x8xi64>
// CHECK-NEXT:       %seen = tile.ew<ge> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
// CHECK-NEXT:       %distance = tile.ew<sub> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi64>
// CHECK-NEXT:       %near = tile.ew<lt> %distance, %fars : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
// CHECK-NEXT:       %mask = tile.ew<and> %seen, %near : tensor<4x8xi1>, tensor<4x8xi1> -> tensor<4x8xi1>
// CHECK-NEXT:       %b = tile.ew<select> %mask, %a, %clear : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %c = tile.reduce<sum> %b, 1 : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:       %d = tile.expand %c, 1 : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:       %next = tile.ew<add> %acc, %d : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
// CHECK-NEXT:       scf.yield %next : tensor<4x1xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.store %sum, %y[%zero, %zero] : tensor<4x1xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
