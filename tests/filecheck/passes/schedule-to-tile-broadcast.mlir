// RUN: tessera opt %s -p schedule-to-tile --level tile | filecheck %s
// Values with fewer or shorter axes have tiles of size 1 there, until they are broadcast to the block.
graph.func @f(%row: !graph.tensor<[F], f32>, %column: !graph.tensor<[B, 1], f32>, %one: !graph.tensor<[], f32>) -> (!graph.tensor<[B, F], f32>) {
  %y = schedule.region<pointwise> <block = [16, 64]> (%r : !graph.tensor<[F], f32> = %row, %c : !graph.tensor<[B, 1], f32> = %column, %o : !graph.tensor<[], f32> = %one) -> (!graph.tensor<[B, F], f32>) {
    %e = graph.ew<exp> %c : !graph.tensor<[B, 1], f32> -> !graph.tensor<[B, 1], f32>
    %rw = graph.broadcast %r : !graph.tensor<[F], f32> -> !graph.tensor<[B, F], f32>
    %cw = graph.broadcast %e : !graph.tensor<[B, 1], f32> -> !graph.tensor<[B, F], f32>
    %ow = graph.broadcast %o : !graph.tensor<[], f32> -> !graph.tensor<[B, F], f32>
    %z = graph.ew<fma> %rw, %cw, %ow : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
    schedule.yield %z : !graph.tensor<[B, F], f32>
  }
  graph.return %y : !graph.tensor<[B, F], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%row: !tile.view<1, f32, global>, %column: !tile.view<2, f32, global>, %one: !tile.view<0, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[F], [B, 1], [], [B, F]] grid ["(B + 15)//16", "(F + 63)//64"] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = arith.constant 16 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %3 = tile.program_id 1
// CHECK-NEXT:     %4 = arith.constant 64 : index
// CHECK-NEXT:     %5 = arith.muli %3, %4 : index
// CHECK-NEXT:     %6 = tile.load %row[%5] : !tile.view<1, f32, global> -> tensor<64xf32>
// CHECK-NEXT:     %7 = tile.expand %6, 0 : tensor<64xf32> -> tensor<1x64xf32>
// CHECK-NEXT:     %8 = arith.constant 0 : index
// CHECK-NEXT:     %9 = tile.load %column[%2, %8] : !tile.view<2, f32, global> -> tensor<16x1xf32>
// CHECK-NEXT:     %10 = tile.ew<exp> %9 : tensor<16x1xf32> -> tensor<16x1xf32>
// CHECK-NEXT:     %11 = tile.load %one[] : !tile.view<0, f32, global> -> tensor<f32>
// CHECK-NEXT:     %12 = tile.expand %11, 0 : tensor<f32> -> tensor<1xf32>
// CHECK-NEXT:     %13 = tile.expand %12, 1 : tensor<1xf32> -> tensor<1x1xf32>
// CHECK-NEXT:     %14 = tile.broadcast %7 : tensor<1x64xf32> -> tensor<16x64xf32>
// CHECK-NEXT:     %15 = tile.broadcast %10 : tensor<16x1xf32> -> tensor<16x64xf32>
// CHECK-NEXT:     %16 = tile.broadcast %13 : tensor<1x1xf32> -> tensor<16x64xf32>
// CHECK-NEXT:     %17 = tile.ew<fma> %14, %15, %16 : tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x64xf32>
// CHECK-NEXT:     tile.store %17, %y[%2, %5] : tensor<16x64xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%row: !graph.tensor<[F], f32>, %column: !graph.tensor<[B, 1], f32>, %one: !graph.tensor<[], f32>) -> (!graph.tensor<[B, F], f32>) {
// CHECK-NEXT:     %y = schedule.launch @f_0 grid <["(B + 15)//16", "(F + 63)//64"]> config <block = [16, 64]>(%row, %column, %one) : (!graph.tensor<[F], f32>, !graph.tensor<[B, 1], f32>, !graph.tensor<[], f32>) -> !graph.tensor<[B, F], f32>
// CHECK-NEXT:     graph.return %y : !graph.tensor<[B, F], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
