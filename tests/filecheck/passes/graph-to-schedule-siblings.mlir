// RUN: tessera opt %s -p graph-to-schedule | filecheck %s
// Two regions of one shape that read the same array are one.
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %y: !graph.tensor<[S, 4], f32>) -> (!graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>) {
  %left = graph.slice %x [0, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 8], f32> -> !graph.tensor<[S, 4], f32>
  %right = graph.slice %x [0, 4] to [9223372036854775807, 8] by [1, 1] : !graph.tensor<[S, 8], f32> -> !graph.tensor<[S, 4], f32>
  %a = graph.ew<exp> %left : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
  %b = graph.ew<add> %right, %y : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
  graph.return %a, %b : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 8], f32>, %y: !graph.tensor<[S, 4], f32>) -> (!graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>) {
// CHECK-NEXT:     %a, %b = schedule.region<pointwise> <block = [64, 4]> (%x_1 : !graph.tensor<[S, 8], f32> = %x, %y_1 : !graph.tensor<[S, 4], f32> = %y) -> (!graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>) {
// CHECK-NEXT:       %left = graph.slice %x_1 [0, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 8], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:       %a_1 = graph.ew<exp> %left : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:       %right = graph.slice %x_1 [0, 4] to [9223372036854775807, 8] by [1, 1] : !graph.tensor<[S, 8], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:       %b_1 = graph.ew<add> %right, %y_1 : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:       schedule.yield %a_1, %b_1 : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %a, %b : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
