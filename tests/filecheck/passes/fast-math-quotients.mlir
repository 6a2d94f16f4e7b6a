// RUN: tessera opt %s -p fast-math,dce | filecheck %s
// A quotient is a multiplication by a reciprocal, which is taken before it is repeated; that of a root is one step.
graph.func @f(%x: !graph.tensor<[S, 4], f32>, %n: !graph.tensor<[S, 1], f32>, %v: !graph.tensor<[S, 4], f32>) -> (!graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>) {
  %w = graph.broadcast %n : !graph.tensor<[S, 1], f32> -> !graph.tensor<[S, 4], f32>
  %mean = graph.ew<div> %x, %w : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
  %root = graph.ew<sqrt> %v : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
  %unit = graph.ew<div> %x, %root : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
  graph.return %mean, %unit : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 4], f32>, %n: !graph.tensor<[S, 1], f32>, %v: !graph.tensor<[S, 4], f32>) -> (!graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>) {
// CHECK-NEXT:     %mean = graph.ew<reciprocal> %n : !graph.tensor<[S, 1], f32> -> !graph.tensor<[S, 1], f32>
// CHECK-NEXT:     %mean_1 = graph.broadcast %mean : !graph.tensor<[S, 1], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:     %mean_2 = graph.ew<mul> %x, %mean_1 : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:     %unit = graph.ew<rsqrt> %v : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:     %unit_1 = graph.ew<mul> %x, %unit : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:     graph.return %mean_2, %unit_1 : !graph.tensor<[S, 4], f32>, !graph.tensor<[S, 4], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
