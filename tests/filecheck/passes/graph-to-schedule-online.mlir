// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// Weights that are exponentials of a matmul: one region, which reads queries, keys and values where they lie in the
// rows of one array, and writes heads side by side.
graph.func @f(%x: !graph.tensor<[B, S, 96], f32>) -> (!graph.tensor<[B, S, 32], f32>) {
  %split = graph.reshape %x : !graph.tensor<[B, S, 96], f32> -> !graph.tensor<[B, S, 3, 2, 16], f32>
  %parts = graph.transpose %split, [2, 0, 3, 1, 4] : !graph.tensor<[B, S, 3, 2, 16], f32> -> !graph.tensor<[3, B, 2, S, 16], f32>
  %q1 = graph.slice %parts [0, 0, 0, 0, 0] to [1, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
  %k1 = graph.slice %parts [1, 0, 0, 0, 0] to [2, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
  %v1 = graph.slice %parts [2, 0, 0, 0, 0] to [3, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
  %q = graph.reshape %q1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
  %k = graph.reshape %k1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
  %v = graph.reshape %v1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
  %t = graph.transpose %k, [0, 1, 3, 2] : !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, 2, 16, S], f32>
  %scores = graph.matmul %q, %t : !graph.tensor<[B, 2, S, 16], f32>, !graph.tensor<[B, 2, 16, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %top = graph.reduce<max> %scores, [3] keepdims : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, 1], f32>
  %tops = graph.broadcast %top : !graph.tensor<[B, 2, S, 1], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %less = graph.ew<sub> %scores, %tops : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %weights = graph.ew<exp> %less : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %sum = graph.reduce<sum> %weights, [3] keepdims : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, 1], f32>
  %sums = graph.broadcast %sum : !graph.tensor<[B, 2, S, 1], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %shares = graph.ew<div> %weights, %sums : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %heads = graph.matmul %shares, %v : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
  %transposed = graph.transpose %heads, [0, 2, 1, 3] : !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, S, 2, 16], f32>
  %y = graph.reshape %transposed : !graph.tensor<[B, S, 2, 16], f32> -> !graph.tensor<[B, S, 32], f32>
  graph.return %y : !graph.tensor<[B, S, 32], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[B, S, 96], f32>) -> (!graph.tensor<[B, S, 32], f32>) {
// CHECK-NEXT:     %y = schedule.region<online> <> (%x_1 : !graph.tensor<[B, S, 96], f32> = %x) -> (!graph.tensor<[B, S, 32], f32>) {
// CHECK-NEXT:       %split = graph.reshape %x_1 : !graph.tensor<[B, S, 96], f32> -> !graph.tensor<[B, S, 3, 2, 16], f32>
// CHECK-NEXT:       %parts = graph.transpose %split, [2, 0, 3, 1, 4] : !graph.tensor<[B, S, 3, 2, 16], f32> -> !graph.tensor<[3, B, 2, S, 16], f32>
// CHECK-NEXT:       %q1 = graph.slice %parts [0, 0, 0, 0, 0] to [1, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
// CHECK-NEXT:       %k1 = graph.slice %parts [1, 0, 0, 0, 0] to [2, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
// CHECK-NEXT:       %v1 = graph.slice %parts [2, 0, 0, 0, 0] to [3, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
// CHECK-NEXT:       %q = graph.reshape %q1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
// CHECK-NEXT:       %k = graph.reshape %k1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
// CHECK-NEXT:       %v = graph.reshape %v1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
// CHECK-NEXT:       %t = graph.transpose %k, [0, 1, 3, 2] : !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, 2, 16, S], f32>
// CHECK-NEXT:       %scores = graph.matmul %q, %t : !graph.tensor<[B, 2, S, 16], f32>, !graph.tensor<[B, 2, 16, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
// CHECK-NEXT:       %top = graph.reduce<max> %scores, [3] keepdims : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, 1], f32>
// CHECK-NEXT:       %tops = graph.broadcast %top : !graph.tensor<[B, 2, S, 1], f32> -> !graph.tensor<[B, 2, S, S], f32>
// CHECK-NEXT:       %less = graph.ew<sub> %scores, %tops : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
// CHECK-NEXT:       %weights = graph.ew<exp> %less : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
// CHECK-NEXT:       %sum = graph.reduce<sum> %weights, [3] keepdims : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, 1], f32>
// CHECK-NEXT:       %sums = graph.broadcast %sum : !graph.tensor<[B, 2, S, 1], f32> -> !graph.tensor<[B, 2, S, S], f32>
// CHECK-NEXT:       %shares = graph.ew<div> %weights, %sums : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
// CHECK-NEXT:       %heads = graph.matmul %shares, %v : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
// CHECK-NEXT:       %transposed = graph.transpose %heads, [0, 2, 1, 3] : !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, S, 2, 16], f32>
// CHECK-NEXT:       %y_1 = graph.reshape %transposed : !graph.tensor<[B, S, 2, 16], f32> -> !graph.tensor<[B, S, 32], f32>
// CHECK-NEXT:       schedule.yield %y_1 : !graph.tensor<[B, S, 32], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %y : !graph.tensor<[B, S, 32], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
