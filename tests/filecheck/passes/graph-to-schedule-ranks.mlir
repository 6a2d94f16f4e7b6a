// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// The block has one size per axis of the result: none for a scalar, 1 for leading axes, no more than there is.
graph.func @f(%a: !graph.tensor<[], f32>, %b: !graph.tensor<[S], f32>, %c: !graph.tensor<[2, 3, S, 0], f32>) -> (!graph.tensor<[], f32>, !graph.tensor<[S], f32>, !graph.tensor<[2, 3, S, 0], f32>) {
  %x = graph.ew<exp> %a : !graph.tensor<[], f32> -> !graph.tensor<[], f32>
  %y = graph.ew<exp> %b : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %z = graph.ew<exp> %c : !graph.tensor<[2, 3, S, 0], f32> -> !graph.tensor<[2, 3, S, 0], f32>
  graph.return %x, %y, %z : !graph.tensor<[], f32>, !graph.tensor<[S], f32>, !graph.tensor<[2, 3, S, 0], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%a: !graph.tensor<[], f32>, %b: !graph.tensor<[S], f32>, %c: !graph.tensor<[2, 3, S, 0], f32>) -> (!graph.tensor<[], f32>, !graph.tensor<[S], f32>, !graph.tensor<[2, 3, S, 0], f32>) {
// CHECK-NEXT:     %x = schedule.region<pointwise> <block = []> (%a_1 : !graph.tensor<[], f32> = %a) -> (!graph.tensor<[], f32>) {
// CHECK-NEXT:       %x_1 = graph.ew<exp> %a_1 : !graph.tensor<[], f32> -> !graph.tensor<[], f32>
// CHECK-NEXT:       schedule.yield %x_1 : !graph.tensor<[], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %y = schedule.region<pointwise> <block = [64]> (%b_1 : !graph.tensor<[S], f32> = %b) -> (!graph.tensor<[S], f32>) {
// CHECK-NEXT:       %y_1 = graph.ew<exp> %b_1 : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
// CHECK-NEXT:       schedule.yield %y_1 : !graph.tensor<[S], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %z = schedule.region<pointwise> <block = [1, 1, 64, 1]> (%c_1 : !graph.tensor<[2, 3, S, 0], f32> = %c) -> (!graph.tensor<[2, 3, S, 0], f32>) {
// CHECK-NEXT:       %z_1 = graph.ew<exp> %c_1 : !graph.tensor<[2, 3, S, 0], f32> -> !graph.tensor<[2, 3, S, 0], f32>
// CHECK-NEXT:       schedule.yield %z_1 : !graph.tensor<[2, 3, S, 0], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %x, %y, %z : !graph.tensor<[], f32>, !graph.tensor<[S], f32>, !graph.tensor<[2, 3, S, 0], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
