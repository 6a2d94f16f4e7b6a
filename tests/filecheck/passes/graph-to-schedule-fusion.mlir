// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// Pointwise ops of one space are one kernel, with as many results as are used.
graph.func @f(%x: !graph.tensor<[B, F], f32>, %bias: !graph.tensor<[F], f32>) -> (!graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32>) {
  %wide = graph.broadcast %bias : !graph.tensor<[F], f32> -> !graph.tensor<[B, F], f32>
  %sum = graph.ew<add> %x, %wide : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %left = graph.ew<exp> %sum : !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %root = graph.ew<sqrt> %left : !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %right = graph.ew<log> %sum : !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  graph.return %root, %right : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[B, F], f32>, %bias: !graph.tensor<[F], f32>) -> (!graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32>) {
// CHECK-NEXT:     %root, %right = schedule.region<pointwise> <block = [64, 64]> (%bias_1 : !graph.tensor<[F], f32> = %bias, %x_1 : !graph.tensor<[B, F], f32> = %x) -> (!graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32>) {
// CHECK-NEXT:       %wide = graph.broadcast %bias_1 : !graph.tensor<[F], f32> -> !graph.tensor<[B, F], f32>
// CHECK-NEXT:       %sum = graph.ew<add> %x_1, %wide : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
// CHECK-NEXT:       %left = graph.ew<exp> %sum : !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
// CHECK-NEXT:       %root_1 = graph.ew<sqrt> %left : !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
// CHECK-NEXT:       %right_1 = graph.ew<log> %sum : !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
// CHECK-NEXT:       schedule.yield %root_1, %right_1 : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %root, %right : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
