// RUN: tessera opt %s -p "fold-groups{rows=64}" --level graph | filecheck %s
// Four heads of queries share two of keys and values: two rows each. Rows that are many stay as they are.
graph.func @few(%q: !graph.tensor<[B, 4, 1, 16], f32>, %k: !graph.tensor<[B, 2, T, 16], f32>, %v: !graph.tensor<[B, 2, T, 16], f32>) -> (!graph.tensor<[B, 4, 1, 16], f32>) {
  %k1 = graph.reshape %k : !graph.tensor<[B, 2, T, 16], f32> -> !graph.tensor<[B, 2, 1, T, 16], f32>
  %k2 = graph.broadcast %k1 : !graph.tensor<[B, 2, 1, T, 16], f32> -> !graph.tensor<[B, 2, 2, T, 16], f32>
  %k3 = graph.reshape %k2 : !graph.tensor<[B, 2, 2, T, 16], f32> -> !graph.tensor<[B, 4, T, 16], f32>
  %v1 = graph.reshape %v : !graph.tensor<[B, 2, T, 16], f32> -> !graph.tensor<[B, 2, 1, T, 16], f32>
  %v2 = graph.broadcast %v1 : !graph.tensor<[B, 2, 1, T, 16], f32> -> !graph.tensor<[B, 2, 2, T, 16], f32>
  %v3 = graph.reshape %v2 : !graph.tensor<[B, 2, 2, T, 16], f32> -> !graph.tensor<[B, 4, T, 16], f32>
  %t = graph.transpose %k3, [0, 1, 3, 2] : !graph.tensor<[B, 4, T, 16], f32> -> !graph.tensor<[B, 4, 16, T], f32>
  %scores = graph.matmul %q, %t : !graph.tensor<[B, 4, 1, 16], f32>, !graph.tensor<[B, 4, 16, T], f32> -> !graph.tensor<[B, 4, 1, T], f32>
  %weights = graph.ew<exp> %scores : !graph.tensor<[B, 4, 1, T], f32> -> !graph.tensor<[B, 4, 1, T], f32>
  %y = graph.matmul %weights, %v3 : !graph.tensor<[B, 4, 1, T], f32>, !graph.tensor<[B, 4, T, 16], f32> -> !graph.tensor<[B, 4, 1, 16], f32>
  graph.return %y : !graph.tensor<[B, 4, 1, 16], f32>
}
graph.func @many(%q: !graph.tensor<[4, S, 16], f32>, %k: !graph.tensor<[1, T, 16], f32>, %v: !graph.tensor<[1, T, 16], f32>) -> (!graph.tensor<[4, S, 16], f32>) {
  %t = graph.transpose %k, [0, 2, 1] : !graph.tensor<[1, T, 16], f32> -> !graph.tensor<[1, 16, T], f32>
  %scores = graph.matmul %q, %t : !graph.tensor<[4, S, 16], f32>, !graph.tensor<[1, 16, T], f32> -> !graph.tensor<[4, S, T], f32>
  %weights = graph.ew<exp> %scores : !graph.tensor<[4, S, T], f32> -> !graph.tensor<[4, S, T], f32>
  %y = graph.matmul %weights, %v : !graph.tensor<[4, S, T], f32>, !graph.tensor<[1, T, 16], f32> -> !graph.tensor<[4, S, 16], f32>
  graph.return %y : !graph.tensor<[4, S, 16], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @few(%q: !graph.tensor<[B, 4, 1, 16], f32>, %k: !graph.tensor<[B, 2, T, 16], f32>, %v: !graph.tensor<[B, 2, T, 16], f32>) -> (!graph.tensor<[B, 4, 1, 16], f32>) {
// CHECK-NEXT:     %k1 = graph.reshape %k : !graph.tensor<[B, 2, T, 16], f32> -> !graph.tensor<[B, 2, 1, T, 16], f32>
// CHECK-NEXT:     %k2 = graph.broadcast %k1 : !graph.tensor<[B, 2, 1, T, 16], f32> -> !graph.tensor<[B, 2, 2, T, 16], f32>
// CHECK-NEXT:     %k3 = graph.reshape %k2 : !graph.tensor<[B, 2, 2, T, 16], f32> -> !graph.tensor<[B, 4, T, 16], f32>
// CHECK-NEXT:     %v1 = graph.reshape %v : !graph.tensor<[B, 2, T, 16], f32> -> !graph.tensor<[B, 2, 1, T, 16], f32>
// CHECK-NEXT:     %v2 = graph.broadcast %v1 : !graph.tensor<[B, 2, 1, T, 16], f32> -> !graph.tensor<[B, 2, 2, T, 16], f32>
// CHECK-NEXT:     %v3 = graph.reshape %v2 : !graph.tensor<[B, 2, 2, T, 16], f32> -> !graph.tensor<[B, 4, T, 16], f32>
// CHECK-NEXT:     %t = graph.transpose %k3, [0, 1, 3, 2] : !graph.tensor<[B, 4, T, 16], f32> -> !graph.tensor<[B, 4, 16, T], f32>
// CHECK-NEXT:     %scores = graph.reshape %q : !graph.tensor<[B, 4, 1, 16], f32> -> !graph.tensor<[B, 2, 2, 16], f32>
// CHECK-NEXT:     %scores_1 = graph.reshape %t : !graph.tensor<[B, 4, 16, T], f32> -> !graph.tensor<[B, 2, 2, 16, T], f32>
// CHECK-NEXT:     %scores_2 = graph.slice %scores_1 [0, 0, 0, 0, 0] to [9223372036854775807, 9223372036854775807, 1, 9223372036854775807, 9223372036854775807] by [1, 1, 1, 1, 1] : !graph.tensor<[B, 2, 2, 16, T], f32> -> !graph.tensor<[B, 2, 1, 16, T], f32>
// CHECK-NEXT:     %scores_3 = graph.reshape %scores_2 : !graph.tensor<[B, 2, 1, 16, T], f32> -> !graph.tensor<[B, 2, 16, T], f32>
// CHECK-NEXT:     %scores_4 = graph.matmul %scores, %scores_3 : !graph.tensor<[B, 2, 2, 16], f32>, !graph.tensor<[B, 2, 16, T], f32> -> !graph.tensor<[B, 2, 2, T], f32>
// CHECK-NEXT:     %scores_5 = graph.reshape %scores_4 : !graph.tensor<[B, 2, 2, T], f32> -> !graph.tensor<[B, 4, 1, T], f32>
// CHECK-NEXT:     %weights = graph.ew<exp> %scores_5 : !graph.tensor<[B, 4, 1, T], f32> -> !graph.tensor<[B, 4, 1, T], f32>
// CHECK-NEXT:     %y = graph.reshape %weights : !graph.tensor<[B, 4, 1, T], f32> -> !graph.tensor<[B, 2, 2, T], f32>
// CHECK-NEXT:     %y_1 = graph.reshape %v3 : !graph.tensor<[B, 4, T, 16], f32> -> !graph.tensor<[B, 2, 2, T, 16], f32>
// CHECK-NEXT:     %y_2 = graph.slice %y_1 [0, 0, 0, 0, 0] to [9223372036854775807, 9223372036854775807, 1, 9223372036854775807, 9223372036854775807] by [1, 1, 1, 1, 1] : !graph.tensor<[B, 2, 2, T, 16], f32> -> !graph.tensor<[B, 2, 1, T, 16], f32>
// CHECK-NEXT:     %y_3 = graph.reshape %y_2 : !graph.tensor<[B, 2, 1, T, 16], f32> -> !graph.tensor<[B, 2, T, 16], f32>
// CHECK-NEXT:     %y_4 = graph.matmul %y, %y_3 : !graph.tensor<[B, 2, 2, T], f32>, !graph.tensor<[B, 2, T, 16], f32> -> !graph.tensor<[B, 2, 2, 16], f32>
// CHECK-NEXT:     %y_5 = graph.reshape %y_4 : !graph.tensor<[B, 2, 2, 16], f32> -> !graph.tensor<[B, 4, 1, 16], f32>
// CHECK-NEXT:     graph.return %y_5 : !graph.tensor<[B, 4, 1, 16], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @many(%q: !graph.tensor<[4, S, 16], f32>, %k: !graph.tensor<[1, T, 16], f32>, %v: !graph.tensor<[1, T, 16], f32>) -> (!graph.tensor<[4, S, 16], f32>) {
// CHECK-NEXT:     %t = graph.transpose %k, [0, 2, 1] : !graph.tensor<[1, T, 16], f32> -> !graph.tensor<[1, 16, T], f32>
// CHECK-NEXT:     %scores = graph.matmul %q, %t : !graph.tensor<[4, S, 16], f32>, !graph.tensor<[1, 16, T], f32> -> !graph.tensor<[4, S, T], f32>
// CHECK-NEXT:     %weights = graph.ew<exp> %scores : !graph.tensor<[4, S, T], f32> -> !graph.tensor<[4, S, T], f32>
// CHECK-NEXT:     %y = graph.matmul %weights, %v : !graph.tensor<[4, S, T], f32>, !graph.tensor<[1, T, 16], f32> -> !graph.tensor<[4, S, 16], f32>
// CHECK-NEXT:     graph.return %y : !graph.tensor<[4, S, 16], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
