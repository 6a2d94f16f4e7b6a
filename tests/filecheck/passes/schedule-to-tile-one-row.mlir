// RUN: tessera opt %s -p schedule-to-tile --level tile | filecheck %s
// Rows that are folded before they are multiplied are held whole, whatever the block says of the depth.
graph.func @f(%x: !graph.tensor<[1, 64], f32>, %w: !graph.tensor<[64, 32], f32>) -> (!graph.tensor<[1, 32], f32>) {
  %0 = schedule.region<matmul> <block = [1, 16, 32]> (%a : !graph.tensor<[1, 64], f32> = %x, %b : !graph.tensor<[64, 32], f32> = %w) -> (!graph.tensor<[1, 32], f32>) {
    %m = graph.reduce<max> %a, [1] keepdims : !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 1], f32>
    %s = graph.broadcast %m : !graph.tensor<[1, 1], f32> -> !graph.tensor<[1, 64], f32>
    %n = graph.ew<sub> %a, %s : !graph.tensor<[1, 64], f32>, !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 64], f32>
    %p = graph.matmul %n, %b : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 32], f32> -> !graph.tensor<[1, 32], f32>
    schedule.yield %p : !graph.tensor<[1, 32], f32>
  }
  graph.return %0 : !graph.tensor<[1, 32], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%x: !tile.view<2, f32, global>, %w: !tile.view<2, f32, global>, %0: !tile.view<2, f32, global>) outputs 1 shapes [[1, 64], [64, 32], [1, 32]] grid [1, 2] {
// CHECK-NEXT:     %1 = tile.program_id 1
// CHECK-NEXT:     %2 = arith.constant 16 : index
// CHECK-NEXT:     %3 = arith.muli %1, %2 : index
// CHECK-NEXT:     %4 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %5 = tile.full %4 : tensor<1x16xf32>
// CHECK-NEXT:     %6 = arith.constant 0 : index
// CHECK-NEXT:     %7 = tile.load %x[%6, %6] : !tile.view<2, f32, global> -> tensor<1x64xf32>
// CHECK-NEXT:     %8 = tile.reduce<max> %7, 1 : tensor<1x64xf32> -> tensor<1xf32>
// CHECK-NEXT:     %9 = tile.expand %8, 1 : tensor<1xf32> -> tensor<1x1xf32>
// CHECK-NEXT:     %10 = tile.broadcast %9 : tensor<1x1xf32> -> tensor<1x64xf32>
// CHECK-NEXT:     %11 = tile.ew<sub> %7, %10 : tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x64xf32>
// CHECK-NEXT:     %12 = tile.load %w[%6, %3] : !tile.view<2, f32, global> -> tensor<64x16xf32>
// CHECK-NEXT:     %13 = tile.dot %11, %12, %5 : tensor<1x64xf32>, tensor<64x16xf32>, tensor<1x16xf32> -> tensor<1x16xf32>
// CHECK-NEXT:     tile.store %13, %0[%6, %3] : tensor<1x16xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[1, 64], f32>, %w: !graph.tensor<[64, 32], f32>) -> (!graph.tensor<[1, 32], f32>) {
// CHECK-NEXT:     %0 = schedule.launch @f_0 grid <[1, 2]> config <block = [1, 16, 32]>(%x, %w) : (!graph.tensor<[1, 64], f32>, !graph.tensor<[64, 32], f32>) -> !graph.tensor<[1, 32], f32>
// CHECK-NEXT:     graph.return %0 : !graph.tensor<[1, 32], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
