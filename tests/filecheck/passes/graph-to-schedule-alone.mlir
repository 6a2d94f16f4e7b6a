// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// A matmul is fused with no producers here, and ops that move elements are fused with theirs; a gather has nothing computed to read from.
graph.func @f(%x: !graph.tensor<[M, K], f32>, %i: !graph.tensor<[2], i32>) -> (!graph.tensor<[M, 2], f32>) {
  %e = graph.ew<exp> %x : !graph.tensor<[M, K], f32> -> !graph.tensor<[M, K], f32>
  %t = graph.transpose %e, [1, 0] : !graph.tensor<[M, K], f32> -> !graph.tensor<[K, M], f32>
  %p = graph.matmul %x, %t : !graph.tensor<[M, K], f32>, !graph.tensor<[K, M], f32> -> !graph.tensor<[M, M], f32>
  %g = graph.gather %p[%i], [1] : !graph.tensor<[M, M], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[M, 2], f32>
  graph.return %g : !graph.tensor<[M, 2], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[M, K], f32>, %i: !graph.tensor<[2], i32>) -> (!graph.tensor<[M, 2], f32>) {
// CHECK-NEXT:     %e = schedule.region<pointwise> <block = [64, 64]> (%x_1 : !graph.tensor<[M, K], f32> = %x) -> (!graph.tensor<[M, K], f32>) {
// CHECK-NEXT:       %e_1 = graph.ew<exp> %x_1 : !graph.tensor<[M, K], f32> -> !graph.tensor<[M, K], f32>
// CHECK-NEXT:       schedule.yield %e_1 : !graph.tensor<[M, K], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %p = schedule.region<matmul> <> (%e_1 : !graph.tensor<[M, K], f32> = %e, %x_1 : !graph.tensor<[M, K], f32> = %x) -> (!graph.tensor<[M, M], f32>) {
// CHECK-NEXT:       %t = graph.transpose %e_1, [1, 0] : !graph.tensor<[M, K], f32> -> !graph.tensor<[K, M], f32>
// CHECK-NEXT:       %p_1 = graph.matmul %x_1, %t : !graph.tensor<[M, K], f32>, !graph.tensor<[K, M], f32> -> !graph.tensor<[M, M], f32>
// CHECK-NEXT:       schedule.yield %p_1 : !graph.tensor<[M, M], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %g = schedule.region<pointwise> <block = [64, 2]> (%p_1 : !graph.tensor<[M, M], f32> = %p, %i_1 : !graph.tensor<[2], i32> = %i) -> (!graph.tensor<[M, 2], f32>) {
// CHECK-NEXT:       %g_1 = graph.gather %p_1[%i_1], [1] : !graph.tensor<[M, M], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[M, 2], f32>
// CHECK-NEXT:       schedule.yield %g_1 : !graph.tensor<[M, 2], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %g : !graph.tensor<[M, 2], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
