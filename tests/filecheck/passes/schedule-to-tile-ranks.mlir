// RUN: tessera opt %s -p schedule-to-tile --level tile | filecheck %s
// A scalar is one program without a grid; three axes are three coordinates.
graph.func @f(%a: !graph.tensor<[], f32>, %b: !graph.tensor<[2, S, 3], f32>) -> (!graph.tensor<[], f32>, !graph.tensor<[2, S, 3], f32>) {
  %x = schedule.region<pointwise> <block = []> (%u : !graph.tensor<[], f32> = %a) -> (!graph.tensor<[], f32>) {
    %e = graph.ew<exp> %u : !graph.tensor<[], f32> -> !graph.tensor<[], f32>
    schedule.yield %e : !graph.tensor<[], f32>
  }
  %y = schedule.region<pointwise> <block = [1, 16, 3], warps = 2> (%u : !graph.tensor<[2, S, 3], f32> = %b) -> (!graph.tensor<[2, S, 3], f32>) {
    %e = graph.ew<exp> %u : !graph.tensor<[2, S, 3], f32> -> !graph.tensor<[2, S, 3], f32>
    schedule.yield %e : !graph.tensor<[2, S, 3], f32>
  }
  graph.return %x, %y : !graph.tensor<[], f32>, !graph.tensor<[2, S, 3], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%a: !tile.view<0, f32, global>, %x: !tile.view<0, f32, global>) outputs 1 shapes [[], []] grid [] {
// CHECK-NEXT:     %0 = arith.constant 0 : index
// CHECK-NEXT:     %1 = tile.load %a[] : !tile.view<0, f32, global> -> tensor<f32>
// CHECK-NEXT:     %2 = tile.ew<exp> %1 : tensor<f32> -> tensor<f32>
// CHECK-NEXT:     tile.store %2, %x[] : tensor<f32>, !tile.view<0, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @f_1(%b: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[2, S, 3], [2, S, 3]] grid [2, "(S + 15)//16", 1] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = arith.constant 1 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %3 = tile.program_id 1
// CHECK-NEXT:     %4 = arith.constant 16 : index
// CHECK-NEXT:     %5 = arith.muli %3, %4 : index
// CHECK-NEXT:     %6 = tile.program_id 2
// CHECK-NEXT:     %7 = arith.constant 3 : index
// CHECK-NEXT:     %8 = arith.muli %6, %7 : index
// CHECK-NEXT:     %9 = arith.constant 0 : index
// CHECK-NEXT:     %10 = tile.load %b[%2, %5, %8] : !tile.view<3, f32, global> -> tensor<1x16x3xf32>
// CHECK-NEXT:     %11 = tile.ew<exp> %10 : tensor<1x16x3xf32> -> tensor<1x16x3xf32>
// CHECK-NEXT:     tile.store %11, %y[%2, %5, %8] : tensor<1x16x3xf32>, !tile.view<3, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%a: !graph.tensor<[], f32>, %b: !graph.tensor<[2, S, 3], f32>) -> (!graph.tensor<[], f32>, !graph.tensor<[2, S, 3], f32>) {
// CHECK-NEXT:     %x = schedule.launch @f_0 grid <[]> config <block = []>(%a) : (!graph.tensor<[], f32>) -> !graph.tensor<[], f32>
// CHECK-NEXT:     %y = schedule.launch @f_1 grid <[2, "(S + 15)//16", 1]> config <block = [1, 16, 3], warps = 2>(%b) : (!graph.tensor<[2, S, 3], f32>) -> !graph.tensor<[2, S, 3], f32>
// CHECK-NEXT:     graph.return %x, %y : !graph.tensor<[], f32>, !graph.tensor<[2, S, 3], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
