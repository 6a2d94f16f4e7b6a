// RUN: tessera opt %s -p schedule-to-tile --level tile | filecheck %s
// A scalar is one program instance without a grid; three axes are three coordinates.
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
// CHECK-NEXT:     %0 = tile.load %a[] : !tile.view<0, f32, global> -> tensor<f32>
// CHECK-NEXT:     %1 = tile.ew<exp> %0 : tensor<f32> -> tensor<f32>
// CHECK-NEXT:     tile.store %1, %x[] : tensor<f32>, !tile.view<0, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @f_1(%b: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[2, S, 3], [2, S, 3]] grid [2, "(S + 15)//16", 1] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = tile.program_id 1
// CHECK-NEXT:     %2 = arith.constant 16 : index
// CHECK-NEXT:     %3 = arith.muli %1, %2 : index
// CHECK-NEXT:     %4 = tile.program_id 2
// CHECK-NEXT:     %5 = arith.constant 3 : index
// CHECK-NEXT:     %6 = arith.muli %4, %5 : index
// CHECK-NEXT:     %7 = tile.stride %b, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %8 = arith.muli %0, %7 : index
// CHECK-NEXT:     %9 = tile.dim %b, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %10 = tile.dim %b, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %11 = tile.stride %b, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %12 = tile.stride %b, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %13 = tile.view %b offset %8 sizes[%9, %10] strides[%11, %12] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     %14 = tile.load %13[%3, %6] : !tile.view<2, f32, global> -> tensor<16x3xf32>
// CHECK-NEXT:     %15 = tile.ew<exp> %14 : tensor<16x3xf32> -> tensor<16x3xf32>
// CHECK-NEXT:     %16 = tile.stride %y, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %17 = arith.muli %0, %16 : index
// CHECK-NEXT:     %18 = tile.dim %y, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %19 = tile.dim %y, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %20 = tile.stride %y, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %21 = tile.stride %y, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %22 = tile.view %y offset %17 sizes[%18, %19] strides[%20, %21] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     tile.store %15, %22[%3, %6] : tensor<16x3xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%a: !graph.tensor<[], f32>, %b: !graph.tensor<[2, S, 3], f32>) -> (!graph.tensor<[], f32>, !graph.tensor<[2, S, 3], f32>) {
// CHECK-NEXT:     %x = schedule.launch @f_0 grid <[]> config <block = []>(%a) : (!graph.tensor<[], f32>) -> !graph.tensor<[], f32>
// CHECK-NEXT:     %y = schedule.launch @f_1 grid <[2, "(S + 15)//16", 1]> config <block = [1, 16, 3], warps = 2>(%b) : (!graph.tensor<[2, S, 3], f32>) -> !graph.tensor<[2, S, 3], f32>
// CHECK-NEXT:     graph.return %x, %y : !graph.tensor<[], f32>, !graph.tensor<[2, S, 3], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
