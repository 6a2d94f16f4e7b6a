// RUN: tessera opt %s -p mark-readonly --level tile | filecheck %s
// Weights are arguments of the program, and are read only; what another kernel makes is not, and small arrays do not count.
tile.func @product(%x: !tile.view<2, f32, global>, %w: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[1, 64], [64, 64], [1, 64]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<1x64xf32>
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<1x64xf32>
  %b = tile.load %w[%zero, %zero] : !tile.view<2, f32, global> -> tensor<64x64xf32>
  %c = tile.dot %a, %b, %clear : tensor<1x64xf32>, tensor<64x64xf32>, tensor<1x64xf32> -> tensor<1x64xf32>
  tile.store %c, %y[%zero, %zero] : tensor<1x64xf32>, !tile.view<2, f32, global>
  tile.return
}
graph.func @f(%x: !graph.tensor<[1, 64], f32>, %w: !graph.tensor<[1, 64, 64], f32>) -> (!graph.tensor<[1, 64], f32>) {
  %v = graph.reshape %w : !graph.tensor<[1, 64, 64], f32> -> !graph.tensor<[64, 64], f32>
  %y = schedule.launch @product grid <[1]> config <>(%x, %v) : (!graph.tensor<[1, 64], f32>, !graph.tensor<[64, 64], f32>) -> !graph.tensor<[1, 64], f32>
  graph.return %y : !graph.tensor<[1, 64], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @product(%x: !tile.view<2, f32, global>, %w: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[1, 64], [64, 64], [1, 64]] grid [1] attributes {readonly = array<i64: 1>} {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<1x64xf32>
// CHECK-NEXT:     %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<1x64xf32>
// CHECK-NEXT:     %b = tile.load %w[%zero, %zero] : !tile.view<2, f32, global> -> tensor<64x64xf32>
// CHECK-NEXT:     %c = tile.dot %a, %b, %clear : tensor<1x64xf32>, tensor<64x64xf32>, tensor<1x64xf32> -> tensor<1x64xf32>
// CHECK-NEXT:     tile.store %c, %y[%zero, %zero] : tensor<1x64xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[1, 64], f32>, %w: !graph.tensor<[1, 64, 64], f32>) -> (!graph.tensor<[1, 64], f32>) {
// CHECK-NEXT:     %v = graph.reshape %w : !graph.tensor<[1, 64, 64], f32> -> !graph.tensor<[64, 64], f32>
// CHECK-NEXT:     %y = schedule.launch @product grid <[1]> config <>(%x, %v) : (!graph.tensor<[1, 64], f32>, !graph.tensor<[64, 64], f32>) -> !graph.tensor<[1, 64], f32>
// CHECK-NEXT:     graph.return %y : !graph.tensor<[1, 64], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
