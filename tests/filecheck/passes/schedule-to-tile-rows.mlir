// RUN: tessera opt %s -p graph-to-schedule,schedule-to-tile,canonicalize,cse --level tile | filecheck %s
// Rows as long as a tile is wide are held; there is no mask, since nothing is beyond them.
graph.func @softmax(%0: !graph.tensor<[M, 96], f32>) -> (!graph.tensor<[M, 96], f32>) {
  %1 = graph.reduce<max> %0, [1] keepdims : !graph.tensor<[M, 96], f32> -> !graph.tensor<[M, 1], f32>
  %2 = graph.broadcast %1 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 96], f32>
  %3 = graph.ew<sub> %0, %2 : !graph.tensor<[M, 96], f32>, !graph.tensor<[M, 96], f32> -> !graph.tensor<[M, 96], f32>
  %4 = graph.ew<exp> %3 : !graph.tensor<[M, 96], f32> -> !graph.tensor<[M, 96], f32>
  %5 = graph.reduce<sum> %4, [1] keepdims : !graph.tensor<[M, 96], f32> -> !graph.tensor<[M, 1], f32>
  %6 = graph.broadcast %5 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 96], f32>
  %7 = graph.ew<div> %4, %6 : !graph.tensor<[M, 96], f32>, !graph.tensor<[M, 96], f32> -> !graph.tensor<[M, 96], f32>
  graph.return %7 : !graph.tensor<[M, 96], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @softmax_0(%0: !tile.view<2, f32, global>, %1: !tile.view<2, f32, global>) outputs 1 shapes [[M, 96], [M, 96]] grid ["(M + 15)//16"] {
// CHECK-NEXT:     %2 = tile.program_id 0
// CHECK-NEXT:     %3 = arith.constant 16 : index
// CHECK-NEXT:     %4 = arith.muli %2, %3 : index
// CHECK-NEXT:     %5 = arith.constant 0 : index
// CHECK-NEXT:     %6 = tile.load %0[%4, %5] : !tile.view<2, f32, global> -> tensor<16x96xf32>
// CHECK-NEXT:     %7 = tile.reduce<max> %6, 1 : tensor<16x96xf32> -> tensor<16xf32>
// CHECK-NEXT:     %8 = tile.expand %7, 1 : tensor<16xf32> -> tensor<16x1xf32>
// CHECK-NEXT:     %9 = tile.broadcast %8 : tensor<16x1xf32> -> tensor<16x96xf32>
// CHECK-NEXT:     %10 = tile.ew<sub> %6, %9 : tensor<16x96xf32>, tensor<16x96xf32> -> tensor<16x96xf32>
// CHECK-NEXT:     %11 = tile.ew<exp> %10 : tensor<16x96xf32> -> tensor<16x96xf32>
// CHECK-NEXT:     %12 = tile.reduce<sum> %11, 1 : tensor<16x96xf32> -> tensor<16xf32>
// CHECK-NEXT:     %13 = tile.expand %12, 1 : tensor<16xf32> -> tensor<16x1xf32>
// CHECK-NEXT:     %14 = tile.broadcast %13 : tensor<16x1xf32> -> tensor<16x96xf32>
// CHECK-NEXT:     %15 = tile.ew<div> %11, %14 : tensor<16x96xf32>, tensor<16x96xf32> -> tensor<16x96xf32>
// CHECK-NEXT:     tile.store %15, %1[%4, %5] : tensor<16x96xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @softmax(%0: !graph.tensor<[M, 96], f32>) -> (!graph.tensor<[M, 96], f32>) {
// CHECK-NEXT:     %1 = schedule.launch @softmax_0 grid <["(M + 15)//16"]> config <block = [16, 96]>(%0) : (!graph.tensor<[M, 96], f32>) -> !graph.tensor<[M, 96], f32>
// CHECK-NEXT:     graph.return %1 : !graph.tensor<[M, 96], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
