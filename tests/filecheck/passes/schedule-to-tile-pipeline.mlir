// RUN: tessera opt %s -p graph-to-schedule,schedule-to-tile,canonicalize,cse --level tile | filecheck %s
// All the way down: gelu's inner part becomes one kernel, in which equal values are computed once.
graph.func @f(%x: !graph.tensor<[B, F], f32>) -> (!graph.tensor<[B, F], f32>) {
  %half = graph.constant !graph.tensor<[B, F], f32> = [0.5]
  %again = graph.constant !graph.tensor<[B, F], f32> = [0.5]
  %a = graph.ew<mul> %half, %x : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %e = graph.ew<erf> %x : !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %b = graph.ew<add> %e, %again : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %y = graph.ew<mul> %a, %b : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  graph.return %y : !graph.tensor<[B, F], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[B, F], [B, F]] grid ["(B + 63)//64", "(F + 63)//64"] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = arith.constant 64 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %3 = tile.program_id 1
// CHECK-NEXT:     %4 = arith.muli %3, %1 : index
// CHECK-NEXT:     %5 = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:     %6 = tile.load %x[%2, %4] : !tile.view<2, f32, global> -> tensor<64x64xf32>
// CHECK-NEXT:     %7 = tile.full %5 : tensor<64x64xf32>
// CHECK-NEXT:     %8 = tile.ew<mul> %6, %7 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     %9 = tile.ew<erf> %6 : tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     %10 = tile.ew<add> %9, %7 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     %11 = tile.ew<mul> %8, %10 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     tile.store %11, %y[%2, %4] : tensor<64x64xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[B, F], f32>) -> (!graph.tensor<[B, F], f32>) {
// CHECK-NEXT:     %y = schedule.launch @f_0 grid <["(B + 63)//64", "(F + 63)//64"]> config <block = [64, 64]>(%x) : (!graph.tensor<[B, F], f32>) -> !graph.tensor<[B, F], f32>
// CHECK-NEXT:     graph.return %y : !graph.tensor<[B, F], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
