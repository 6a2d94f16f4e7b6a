// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// Of three parts of one array, the third joins the kernel that the first two have become.
graph.func @f(%x: !graph.tensor<[B, S, 48], f32>, %k: !graph.tensor<[B, T, 16], f32>, %v: !graph.tensor<[B, T, 16], f32>, %w: !graph.tensor<[B, T, 16], f32>) -> (!graph.tensor<[B, "T + S", 16], f32>, !graph.tensor<[B, "T + S", 16], f32>, !graph.tensor<[B, "T + S", 16], f32>) {
  %a = graph.slice %x [0, 0, 0] to [9223372036854775807, 9223372036854775807, 16] by [1, 1, 1] : !graph.tensor<[B, S, 48], f32> -> !graph.tensor<[B, S, 16], f32>
  %b = graph.slice %x [0, 0, 16] to [9223372036854775807, 9223372036854775807, 32] by [1, 1, 1] : !graph.tensor<[B, S, 48], f32> -> !graph.tensor<[B, S, 16], f32>
  %c = graph.slice %x [0, 0, 32] to [9223372036854775807, 9223372036854775807, 48] by [1, 1, 1] : !graph.tensor<[B, S, 48], f32> -> !graph.tensor<[B, S, 16], f32>
  %keys = graph.concatenate %k, %a axis 1 : !graph.tensor<[B, T, 16], f32>, !graph.tensor<[B, S, 16], f32> -> !graph.tensor<[B, "T + S", 16], f32>
  %values = graph.concatenate %v, %b axis 1 : !graph.tensor<[B, T, 16], f32>, !graph.tensor<[B, S, 16], f32> -> !graph.tensor<[B, "T + S", 16], f32>
  %gates = graph.concatenate %w, %c axis 1 : !graph.tensor<[B, T, 16], f32>, !graph.tensor<[B, S, 16], f32> -> !graph.tensor<[B, "T + S", 16], f32>
  graph.return %keys, %values, %gates : !graph.tensor<[B, "T + S", 16], f32>, !graph.tensor<[B, "T + S", 16], f32>, !graph.tensor<[B, "T + S", 16], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[B, S, 48], f32>, %k: !graph.tensor<[B, T, 16], f32>, %v: !graph.tensor<[B, T, 16], f32>, %w: !graph.tensor<[B, T, 16], f32>) -> (!graph.tensor<[B, "S + T", 16], f32>, !graph.tensor<[B, "S + T", 16], f32>, !graph.tensor<[B, "S + T", 16], f32>) {
// CHECK-NEXT:     %keys, %values, %gates = schedule.region<pointwise> <block = [1, 64, 16]> (%x_1 : !graph.tensor<[B, S, 48], f32> = %x, %k_1 : !graph.tensor<[B, T, 16], f32> = %k, %v_1 : !graph.tensor<[B, T, 16], f32> = %v, %w_1 : !graph.tensor<[B, T, 16], f32> = %w) -> (!graph.tensor<[B, "S + T", 16], f32>, !graph.tensor<[B, "S + T", 16], f32>, !graph.tensor<[B, "S + T", 16], f32>) {
// CHECK-NEXT:       %a = graph.slice %x_1 [0, 0, 0] to [9223372036854775807, 9223372036854775807, 16] by [1, 1, 1] : !graph.tensor<[B, S, 48], f32> -> !graph.tensor<[B, S, 16], f32>
// CHECK-NEXT:       %keys_1 = graph.concatenate %k_1, %a axis 1 : !graph.tensor<[B, T, 16], f32>, !graph.tensor<[B, S, 16], f32> -> !graph.tensor<[B, "S + T", 16], f32>
// CHECK-NEXT:       %b = graph.slice %x_1 [0, 0, 16] to [9223372036854775807, 9223372036854775807, 32] by [1, 1, 1] : !graph.tensor<[B, S, 48], f32> -> !graph.tensor<[B, S, 16], f32>
// CHECK-NEXT:       %values_1 = graph.concatenate %v_1, %b axis 1 : !graph.tensor<[B, T, 16], f32>, !graph.tensor<[B, S, 16], f32> -> !graph.tensor<[B, "S + T", 16], f32>
// CHECK-NEXT:       %c = graph.slice %x_1 [0, 0, 32] to [9223372036854775807, 9223372036854775807, 48] by [1, 1, 1] : !graph.tensor<[B, S, 48], f32> -> !graph.tensor<[B, S, 16], f32>
// CHECK-NEXT:       %gates_1 = graph.concatenate %w_1, %c axis 1 : !graph.tensor<[B, T, 16], f32>, !graph.tensor<[B, S, 16], f32> -> !graph.tensor<[B, "S + T", 16], f32>
// CHECK-NEXT:       schedule.yield %keys_1, %values_1, %gates_1 : !graph.tensor<[B, "S + T", 16], f32>, !graph.tensor<[B, "S + T", 16], f32>, !graph.tensor<[B, "S + T", 16], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %keys, %values, %gates : !graph.tensor<[B, "S + T", 16], f32>, !graph.tensor<[B, "S + T", 16], f32>, !graph.tensor<[B, "S + T", 16], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
