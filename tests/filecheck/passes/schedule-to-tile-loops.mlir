// RUN: tessera opt %s -p graph-to-schedule,schedule-to-tile,canonicalize,cse --level tile | filecheck %s
// Rows of any length are folded in loops, one for all reductions that rest on equally many, and read again behind them.
graph.func @softmax(%0: !graph.tensor<[M, N], f32>) -> (!graph.tensor<[M, N], f32>) {
  %1 = graph.reduce<max> %0, [1] keepdims : !graph.tensor<[M, N], f32> -> !graph.tensor<[M, 1], f32>
  %2 = graph.broadcast %1 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, N], f32>
  %3 = graph.ew<sub> %0, %2 : !graph.tensor<[M, N], f32>, !graph.tensor<[M, N], f32> -> !graph.tensor<[M, N], f32>
  %4 = graph.ew<exp> %3 : !graph.tensor<[M, N], f32> -> !graph.tensor<[M, N], f32>
  %5 = graph.reduce<sum> %4, [1] keepdims : !graph.tensor<[M, N], f32> -> !graph.tensor<[M, 1], f32>
  %6 = graph.broadcast %5 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, N], f32>
  %7 = graph.ew<div> %4, %6 : !graph.tensor<[M, N], f32>, !graph.tensor<[M, N], f32> -> !graph.tensor<[M, N], f32>
  graph.return %7 : !graph.tensor<[M, N], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @softmax_0(%0: !tile.view<2, f32, global>, %1: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [M, N]] grid ["(M + 15)//16"] {
// CHECK-NEXT:     %2 = tile.program_id 0
// CHECK-NEXT:     %3 = arith.constant 16 : index
// CHECK-NEXT:     %4 = arith.muli %2, %3 : index
// CHECK-NEXT:     %5 = arith.constant 0xff800000 : f32
// CHECK-NEXT:     %6 = tile.full %5 : tensor<16x1xf32>
// CHECK-NEXT:     %7 = arith.constant 0 : index
// CHECK-NEXT:     %8 = tile.dim %0, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %9 = arith.constant 128 : index
// CHECK-NEXT:     %10 = scf.for %11 = %7 to %8 step %9 iter_args(%12 = %6) -> (tensor<16x1xf32>) {
// CHECK-NEXT:       %13 = tile.load %0[%4, %11] : !tile.view<2, f32, global> -> tensor<16x128xf32>
// CHECK-NEXT:       %14 = tile.iota %11, 1 : tensor<1x128xi64>
// CHECK-NEXT:       %15 = arith.index_cast %8 : index to i64
// CHECK-NEXT:       %16 = tile.full %15 : tensor<1x128xi64>
// CHECK-NEXT:       %17 = tile.ew<lt> %14, %16 : tensor<1x128xi64>, tensor<1x128xi64> -> tensor<1x128xi1>
// CHECK-NEXT:       %18 = tile.broadcast %17 : tensor<1x128xi1> -> tensor<16x128xi1>
// CHECK-NEXT:       %19 = tile.full %5 : tensor<16x128xf32>
// CHECK-NEXT:       %20 = tile.ew<select> %18, %13, %19 : tensor<16x128xi1>, tensor<16x128xf32>, tensor<16x128xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %21 = tile.reduce<max> %20, 1 : tensor<16x128xf32> -> tensor<16xf32>
// CHECK-NEXT:       %22 = tile.expand %21, 1 : tensor<16xf32> -> tensor<16x1xf32>
// CHECK-NEXT:       %23 = tile.ew<max> %12, %22 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
// CHECK-NEXT:       scf.yield %23 : tensor<16x1xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %24 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %25 = tile.full %24 : tensor<16x1xf32>
// CHECK-NEXT:     %26 = scf.for %27 = %7 to %8 step %9 iter_args(%28 = %25) -> (tensor<16x1xf32>) {
// CHECK-NEXT:       %29 = tile.load %0[%4, %27] : !tile.view<2, f32, global> -> tensor<16x128xf32>
// CHECK-NEXT:       %30 = tile.broadcast %10 : tensor<16x1xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %31 = tile.ew<sub> %29, %30 : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %32 = tile.ew<exp> %31 : tensor<16x128xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %33 = tile.iota %27, 1 : tensor<1x128xi64>
// CHECK-NEXT:       %34 = arith.index_cast %8 : index to i64
// CHECK-NEXT:       %35 = tile.full %34 : tensor<1x128xi64>
// CHECK-NEXT:       %36 = tile.ew<lt> %33, %35 : tensor<1x128xi64>, tensor<1x128xi64> -> tensor<1x128xi1>
// CHECK-NEXT:       %37 = tile.broadcast %36 : tensor<1x128xi1> -> tensor<16x128xi1>
// CHECK-NEXT:       %38 = tile.full %24 : tensor<16x128xf32>
// CHECK-NEXT:       %39 = tile.ew<select> %37, %32, %38 : tensor<16x128xi1>, tensor<16x128xf32>, tensor<16x128xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %40 = tile.reduce<sum> %39, 1 : tensor<16x128xf32> -> tensor<16xf32>
// CHECK-NEXT:       %41 = tile.expand %40, 1 : tensor<16xf32> -> tensor<16x1xf32>
// CHECK-NEXT:       %42 = tile.ew<add> %28, %41 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
// CHECK-NEXT:       scf.yield %42 : tensor<16x1xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.for %43 = %7 to %8 step %9 {
// CHECK-NEXT:       %44 = tile.load %0[%4, %43] : !tile.view<2, f32, global> -> tensor<16x128xf32>
// CHECK-NEXT:       %45 = tile.broadcast %10 : tensor<16x1xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %46 = tile.ew<sub> %44, %45 : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %47 = tile.ew<exp> %46 : tensor<16x128xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %48 = tile.broadcast %26 : tensor<16x1xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       %49 = tile.ew<div> %47, %48 : tensor<16x128xf32>, tensor<16x128xf32> -> tensor<16x128xf32>
// CHECK-NEXT:       tile.store %49, %1[%4, %43] : tensor<16x128xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @softmax(%0: !graph.tensor<[M, N], f32>) -> (!graph.tensor<[M, N], f32>) {
// CHECK-NEXT:     %1 = schedule.launch @softmax_0 grid <["(M + 15)//16"]> config <block = [16, 128]>(%0) : (!graph.tensor<[M, N], f32>) -> !graph.tensor<[M, N], f32>
// CHECK-NEXT:     graph.return %1 : !graph.tensor<[M, N], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
