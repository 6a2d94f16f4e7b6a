// RUN: tessera opt %s -p "graph-to-schedule{few=1}" --level schedule | filecheck %s
// A norm in front of matmuls of one row is fused into them; where others use it, too, it is computed before.
graph.func @norm(%x: !graph.tensor<[1, 64], f32>, %v: !graph.tensor<[64, 96], f32>, %w: !graph.tensor<[64, 32], f32>) -> (!graph.tensor<[1, 96], f32>, !graph.tensor<[1, 32], f32>) {
  %m = graph.reduce<max> %x, [1] keepdims : !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 1], f32>
  %s = graph.broadcast %m : !graph.tensor<[1, 1], f32> -> !graph.tensor<[1, 64], f32>
  %n = graph.ew<sub> %x, %s : !graph.tensor<[1, 64], f32>, !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 64], f32>
  %p = graph.matmul %n, %v : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 96], f32> -> !graph.tensor<[1, 96], f32>
  %q = graph.matmul %n, %w : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 32], f32> -> !graph.tensor<[1, 32], f32>
  graph.return %p, %q : !graph.tensor<[1, 96], f32>, !graph.tensor<[1, 32], f32>
}
graph.func @wanted(%x: !graph.tensor<[1, 64], f32>, %w: !graph.tensor<[64, 32], f32>) -> (!graph.tensor<[1, 64], f32>, !graph.tensor<[1, 32], f32>) {
  %n = graph.ew<tanh> %x : !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 64], f32>
  %p = graph.matmul %n, %w : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 32], f32> -> !graph.tensor<[1, 32], f32>
  graph.return %n, %p : !graph.tensor<[1, 64], f32>, !graph.tensor<[1, 32], f32>
}
graph.func @many(%x: !graph.tensor<[2, 64], f32>, %w: !graph.tensor<[64, 32], f32>) -> (!graph.tensor<[2, 32], f32>) {
  %n = graph.ew<tanh> %x : !graph.tensor<[2, 64], f32> -> !graph.tensor<[2, 64], f32>
  %p = graph.matmul %n, %w : !graph.tensor<[2, 64], f32>, !graph.tensor<[64, 32], f32> -> !graph.tensor<[2, 32], f32>
  graph.return %p : !graph.tensor<[2, 32], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @norm(%x: !graph.tensor<[1, 64], f32>, %v: !graph.tensor<[64, 96], f32>, %w: !graph.tensor<[64, 32], f32>) -> (!graph.tensor<[1, 96], f32>, !graph.tensor<[1, 32], f32>) {
// CHECK-NEXT:     %p = schedule.region<matmul> <> (%x_1 : !graph.tensor<[1, 64], f32> = %x, %v_1 : !graph.tensor<[64, 96], f32> = %v) -> (!graph.tensor<[1, 96], f32>) {
// CHECK-NEXT:       %m = graph.reduce<max> %x_1, [1] keepdims : !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 1], f32>
// CHECK-NEXT:       %s = graph.broadcast %m : !graph.tensor<[1, 1], f32> -> !graph.tensor<[1, 64], f32>
// CHECK-NEXT:       %n = graph.ew<sub> %x_1, %s : !graph.tensor<[1, 64], f32>, !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 64], f32>
// CHECK-NEXT:       %p_1 = graph.matmul %n, %v_1 : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 96], f32> -> !graph.tensor<[1, 96], f32>
// CHECK-NEXT:       schedule.yield %p_1 : !graph.tensor<[1, 96], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %q = schedule.region<matmul> <> (%x_1 : !graph.tensor<[1, 64], f32> = %x, %w_1 : !graph.tensor<[64, 32], f32> = %w) -> (!graph.tensor<[1, 32], f32>) {
// CHECK-NEXT:       %m = graph.reduce<max> %x_1, [1] keepdims : !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 1], f32>
// CHECK-NEXT:       %s = graph.broadcast %m : !graph.tensor<[1, 1], f32> -> !graph.tensor<[1, 64], f32>
// CHECK-NEXT:       %n = graph.ew<sub> %x_1, %s : !graph.tensor<[1, 64], f32>, !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 64], f32>
// CHECK-NEXT:       %q_1 = graph.matmul %n, %w_1 : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 32], f32> -> !graph.tensor<[1, 32], f32>
// CHECK-NEXT:       schedule.yield %q_1 : !graph.tensor<[1, 32], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %p, %q : !graph.tensor<[1, 96], f32>, !graph.tensor<[1, 32], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @wanted(%x: !graph.tensor<[1, 64], f32>, %w: !graph.tensor<[64, 32], f32>) -> (!graph.tensor<[1, 64], f32>, !graph.tensor<[1, 32], f32>) {
// CHECK-NEXT:     %n = schedule.region<pointwise> <block = [1, 64]> (%x_1 : !graph.tensor<[1, 64], f32> = %x) -> (!graph.tensor<[1, 64], f32>) {
// CHECK-NEXT:       %n_1 = graph.ew<tanh> %x_1 : !graph.tensor<[1, 64], f32> -> !graph.tensor<[1, 64], f32>
// CHECK-NEXT:       schedule.yield %n_1 : !graph.tensor<[1, 64], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %p = schedule.region<matmul> <> (%n_1 : !graph.tensor<[1, 64], f32> = %n, %w_1 : !graph.tensor<[64, 32], f32> = %w) -> (!graph.tensor<[1, 32], f32>) {
// CHECK-NEXT:       %p_1 = graph.matmul %n_1, %w_1 : !graph.tensor<[1, 64], f32>, !graph.tensor<[64, 32], f32> -> !graph.tensor<[1, 32], f32>
// CHECK-NEXT:       schedule.yield %p_1 : !graph.tensor<[1, 32], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %n, %p : !graph.tensor<[1, 64], f32>, !graph.tensor<[1, 32], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @many(%x: !graph.tensor<[2, 64], f32>, %w: !graph.tensor<[64, 32], f32>) -> (!graph.tensor<[2, 32], f32>) {
// CHECK-NEXT:     %n = schedule.region<pointwise> <block = [2, 64]> (%x_1 : !graph.tensor<[2, 64], f32> = %x) -> (!graph.tensor<[2, 64], f32>) {
// CHECK-NEXT:       %n_1 = graph.ew<tanh> %x_1 : !graph.tensor<[2, 64], f32> -> !graph.tensor<[2, 64], f32>
// CHECK-NEXT:       schedule.yield %n_1 : !graph.tensor<[2, 64], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %p = schedule.region<matmul> <> (%n_1 : !graph.tensor<[2, 64], f32> = %n, %w_1 : !graph.tensor<[64, 32], f32> = %w) -> (!graph.tensor<[2, 32], f32>) {
// CHECK-NEXT:       %p_1 = graph.matmul %n_1, %w_1 : !graph.tensor<[2, 64], f32>, !graph.tensor<[64, 32], f32> -> !graph.tensor<[2, 32], f32>
// CHECK-NEXT:       schedule.yield %p_1 : !graph.tensor<[2, 32], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %p : !graph.tensor<[2, 32], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
