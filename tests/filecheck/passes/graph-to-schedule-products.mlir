// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// A layer: its rows are one axis, and what is computed of its result is computed with it; weights are read as they lie.
graph.func @f(%x: !graph.tensor<[B, S, 64], bf16>, %w: !graph.tensor<[128, 64], bf16>, %bias: !graph.tensor<[128], bf16>) -> (!graph.tensor<[B, S, 128], bf16>) {
  %t = graph.transpose %w, [1, 0] : !graph.tensor<[128, 64], bf16> -> !graph.tensor<[64, 128], bf16>
  %p = graph.matmul %x, %t : !graph.tensor<[B, S, 64], bf16>, !graph.tensor<[64, 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  %wide = graph.broadcast %bias : !graph.tensor<[128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  %sum = graph.ew<add> %p, %wide : !graph.tensor<[B, S, 128], bf16>, !graph.tensor<[B, S, 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  %gate = graph.ew<sigmoid> %sum : !graph.tensor<[B, S, 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  %y = graph.ew<mul> %sum, %gate : !graph.tensor<[B, S, 128], bf16>, !graph.tensor<[B, S, 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  graph.return %y : !graph.tensor<[B, S, 128], bf16>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[B, S, 64], bf16>, %w: !graph.tensor<[128, 64], bf16>, %bias: !graph.tensor<[128], bf16>) -> (!graph.tensor<[B, S, 128], bf16>) {
// CHECK-NEXT:     %0 = graph.reshape %x : !graph.tensor<[B, S, 64], bf16> -> !graph.tensor<["B*S", 64], bf16>
// CHECK-NEXT:     %y = schedule.region<matmul> <> (%w_1 : !graph.tensor<[128, 64], bf16> = %w, %1 : !graph.tensor<["B*S", 64], bf16> = %0, %bias_1 : !graph.tensor<[128], bf16> = %bias) -> (!graph.tensor<["B*S", 128], bf16>) {
// CHECK-NEXT:       %t = graph.transpose %w_1, [1, 0] : !graph.tensor<[128, 64], bf16> -> !graph.tensor<[64, 128], bf16>
// CHECK-NEXT:       %p = graph.matmul %1, %t : !graph.tensor<["B*S", 64], bf16>, !graph.tensor<[64, 128], bf16> -> !graph.tensor<["B*S", 128], bf16>
// CHECK-NEXT:       %wide = graph.broadcast %bias_1 : !graph.tensor<[128], bf16> -> !graph.tensor<["B*S", 128], bf16>
// CHECK-NEXT:       %sum = graph.ew<add> %p, %wide : !graph.tensor<["B*S", 128], bf16>, !graph.tensor<["B*S", 128], bf16> -> !graph.tensor<["B*S", 128], bf16>
// CHECK-NEXT:       %gate = graph.ew<sigmoid> %sum : !graph.tensor<["B*S", 128], bf16> -> !graph.tensor<["B*S", 128], bf16>
// CHECK-NEXT:       %y_1 = graph.ew<mul> %sum, %gate : !graph.tensor<["B*S", 128], bf16>, !graph.tensor<["B*S", 128], bf16> -> !graph.tensor<["B*S", 128], bf16>
// CHECK-NEXT:       schedule.yield %y_1 : !graph.tensor<["B*S", 128], bf16>
// CHECK-NEXT:     }
// CHECK-NEXT:     %y_1 = graph.reshape %y : !graph.tensor<["B*S", 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
// CHECK-NEXT:     graph.return %y_1 : !graph.tensor<[B, S, 128], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
