// RUN: tessera opt %s -p split-depth | filecheck %s
// The product is done in parts, with what its right operand is read through; what is computed of it, behind their sum.
// CHECK:      %p = schedule.region<matmul> <block = [64, 64, 32]>
// CHECK-NEXT:   graph.transpose
// CHECK-NEXT:   graph.matmul {{.*}} parts 2 step 32 : {{.*}} -> !graph.tensor<[2, M, N], f32>
// CHECK-NEXT:   schedule.yield
// CHECK:      schedule.region<pointwise>
// CHECK:        graph.slice {{.*}} [0, 0, 0]
// CHECK:        graph.slice {{.*}} [1, 0, 0]
// CHECK-NEXT:   graph.reshape
// CHECK-NEXT:   graph.ew<add>
// CHECK-NEXT:   graph.ew<cast> {{.*}} -> !graph.tensor<[M, N], bf16>
// CHECK-NEXT:   graph.broadcast
// CHECK-NEXT:   graph.ew<add>
// CHECK-NEXT:   schedule.yield
// CHECK-NOT:  graph.matmul
graph.func @f(%x: !graph.tensor<[M, K], bf16>, %w: !graph.tensor<[N, K], bf16>, %b: !graph.tensor<[N], bf16>) -> (!graph.tensor<[M, N], bf16>) {
  %y = schedule.region<matmul> <block = [64, 64, 32], split = 2> (%0 : !graph.tensor<[M, K], bf16> = %x, %1 : !graph.tensor<[N, K], bf16> = %w, %2 : !graph.tensor<[N], bf16> = %b) -> (!graph.tensor<[M, N], bf16>) {
    %t = graph.transpose %1, [1, 0] : !graph.tensor<[N, K], bf16> -> !graph.tensor<[K, N], bf16>
    %p = graph.matmul %0, %t : !graph.tensor<[M, K], bf16>, !graph.tensor<[K, N], bf16> -> !graph.tensor<[M, N], bf16>
    %c = graph.broadcast %2 : !graph.tensor<[N], bf16> -> !graph.tensor<[M, N], bf16>
    %s = graph.ew<add> %p, %c : !graph.tensor<[M, N], bf16>, !graph.tensor<[M, N], bf16> -> !graph.tensor<[M, N], bf16>
    schedule.yield %s : !graph.tensor<[M, N], bf16>
  }
  graph.return %y : !graph.tensor<[M, N], bf16>
}
