// RUN: tessera opt %s -p "graph-to-schedule{few=1}" --level schedule | filecheck %s
// Keys that are computed are computed where they are read, and stored there for others.
graph.func @f(%q: !graph.tensor<[4, 1, 16], f32>, %k: !graph.tensor<[4, 32, 16], f32>, %v: !graph.tensor<[4, 32, 16], f32>) -> (!graph.tensor<[4, 1, 16], f32>, !graph.tensor<[4, 32, 16], f32>) {
  %keys = graph.ew<tanh> %k : !graph.tensor<[4, 32, 16], f32> -> !graph.tensor<[4, 32, 16], f32>
  %t = graph.transpose %keys, [0, 2, 1] : !graph.tensor<[4, 32, 16], f32> -> !graph.tensor<[4, 16, 32], f32>
  %s = graph.matmul %q, %t : !graph.tensor<[4, 1, 16], f32>, !graph.tensor<[4, 16, 32], f32> -> !graph.tensor<[4, 1, 32], f32>
  %e = graph.ew<exp> %s : !graph.tensor<[4, 1, 32], f32> -> !graph.tensor<[4, 1, 32], f32>
  %o = graph.matmul %e, %v : !graph.tensor<[4, 1, 32], f32>, !graph.tensor<[4, 32, 16], f32> -> !graph.tensor<[4, 1, 16], f32>
  graph.return %o, %keys : !graph.tensor<[4, 1, 16], f32>, !graph.tensor<[4, 32, 16], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%q: !graph.tensor<[4, 1, 16], f32>, %k: !graph.tensor<[4, 32, 16], f32>, %v: !graph.tensor<[4, 32, 16], f32>) -> (!graph.tensor<[4, 1, 16], f32>, !graph.tensor<[4, 32, 16], f32>) {
// CHECK-NEXT:     %keys, %o = schedule.region<online> <> (%k_1 : !graph.tensor<[4, 32, 16], f32> = %k, %q_1 : !graph.tensor<[4, 1, 16], f32> = %q, %v_1 : !graph.tensor<[4, 32, 16], f32> = %v) -> (!graph.tensor<[4, 32, 16], f32>, !graph.tensor<[4, 1, 16], f32>) {
// CHECK-NEXT:       %keys_1 = graph.ew<tanh> %k_1 : !graph.tensor<[4, 32, 16], f32> -> !graph.tensor<[4, 32, 16], f32>
// CHECK-NEXT:       %t = graph.transpose %keys_1, [0, 2, 1] : !graph.tensor<[4, 32, 16], f32> -> !graph.tensor<[4, 16, 32], f32>
// CHECK-NEXT:       %s = graph.matmul %q_1, %t : !graph.tensor<[4, 1, 16], f32>, !graph.tensor<[4, 16, 32], f32> -> !graph.tensor<[4, 1, 32], f32>
// CHECK-NEXT:       %e = graph.ew<exp> %s : !graph.tensor<[4, 1, 32], f32> -> !graph.tensor<[4, 1, 32], f32>
// CHECK-NEXT:       %o_1 = graph.matmul %e, %v_1 : !graph.tensor<[4, 1, 32], f32>, !graph.tensor<[4, 32, 16], f32> -> !graph.tensor<[4, 1, 16], f32>
// CHECK-NEXT:       schedule.yield %keys_1, %o_1 : !graph.tensor<[4, 32, 16], f32>, !graph.tensor<[4, 1, 16], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %o, %keys : !graph.tensor<[4, 1, 16], f32>, !graph.tensor<[4, 32, 16], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
