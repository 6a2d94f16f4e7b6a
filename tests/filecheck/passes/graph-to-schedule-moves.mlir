// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// Ops that only move elements are fused with others: heads that are merged, a transpose, halves that are swapped.
graph.func @heads(%0: !graph.tensor<[B, 3, S, 8], f32>, %1: !graph.tensor<[B, S, 24], f32>) -> (!graph.tensor<[B, S, 24], f32>) {
  %2 = graph.transpose %0, [0, 2, 1, 3] : !graph.tensor<[B, 3, S, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
  %3 = graph.reshape %2 : !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 24], f32>
  %4 = graph.ew<add> %3, %1 : !graph.tensor<[B, S, 24], f32>, !graph.tensor<[B, S, 24], f32> -> !graph.tensor<[B, S, 24], f32>
  graph.return %4 : !graph.tensor<[B, S, 24], f32>
}
graph.func @transposed(%0: !graph.tensor<[N, M], f32>, %1: !graph.tensor<[M, N], f32>) -> (!graph.tensor<[M, N], f32>) {
  %2 = graph.transpose %0, [1, 0] : !graph.tensor<[N, M], f32> -> !graph.tensor<[M, N], f32>
  %3 = graph.ew<add> %2, %1 : !graph.tensor<[M, N], f32>, !graph.tensor<[M, N], f32> -> !graph.tensor<[M, N], f32>
  graph.return %3 : !graph.tensor<[M, N], f32>
}
graph.func @rope(%0: !graph.tensor<[B, S, 3, 8], f32>, %1: !graph.tensor<[S, 1, 8], f32>, %2: !graph.tensor<[S, 1, 8], f32>) -> (!graph.tensor<[B, S, 3, 8], f32>) {
  %3 = graph.iota 0 : !graph.tensor<[4], i64>
  %4 = graph.iota 0 : !graph.tensor<[4], i64>
  %5 = graph.gather %0[%3], [3] : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[4], i64> -> !graph.tensor<[B, S, 3, 4], f32>
  %6 = graph.constant !graph.tensor<[4], i64> = [4]
  %7 = graph.ew<add> %4, %6 : !graph.tensor<[4], i64>, !graph.tensor<[4], i64> -> !graph.tensor<[4], i64>
  %8 = graph.gather %0[%7], [3] : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[4], i64> -> !graph.tensor<[B, S, 3, 4], f32>
  %9 = graph.ew<neg> %8 : !graph.tensor<[B, S, 3, 4], f32> -> !graph.tensor<[B, S, 3, 4], f32>
  %10 = graph.concatenate %9, %5 axis 3 : !graph.tensor<[B, S, 3, 4], f32>, !graph.tensor<[B, S, 3, 4], f32> -> !graph.tensor<[B, S, 3, 8], f32>
  %11 = graph.broadcast %1 : !graph.tensor<[S, 1, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
  %12 = graph.ew<mul> %0, %11 : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
  %13 = graph.broadcast %2 : !graph.tensor<[S, 1, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
  %14 = graph.ew<mul> %10, %13 : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
  %15 = graph.ew<add> %12, %14 : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
  graph.return %15 : !graph.tensor<[B, S, 3, 8], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @heads(%0: !graph.tensor<[B, 3, S, 8], f32>, %1: !graph.tensor<[B, S, 24], f32>) -> (!graph.tensor<[B, S, 24], f32>) {
// CHECK-NEXT:     %2 = schedule.region<pointwise> <block = [1, 1, 3, 8]> (%3 : !graph.tensor<[B, 3, S, 8], f32> = %0, %4 : !graph.tensor<[B, S, 24], f32> = %1) -> (!graph.tensor<[B, S, 24], f32>) {
// CHECK-NEXT:       %5 = graph.transpose %3, [0, 2, 1, 3] : !graph.tensor<[B, 3, S, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:       %6 = graph.reshape %5 : !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 24], f32>
// CHECK-NEXT:       %7 = graph.ew<add> %6, %4 : !graph.tensor<[B, S, 24], f32>, !graph.tensor<[B, S, 24], f32> -> !graph.tensor<[B, S, 24], f32>
// CHECK-NEXT:       schedule.yield %7 : !graph.tensor<[B, S, 24], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %2 : !graph.tensor<[B, S, 24], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @transposed(%0: !graph.tensor<[N, M], f32>, %1: !graph.tensor<[M, N], f32>) -> (!graph.tensor<[M, N], f32>) {
// CHECK-NEXT:     %2 = schedule.region<pointwise> <block = [64, 64]> (%3 : !graph.tensor<[N, M], f32> = %0, %4 : !graph.tensor<[M, N], f32> = %1) -> (!graph.tensor<[M, N], f32>) {
// CHECK-NEXT:       %5 = graph.transpose %3, [1, 0] : !graph.tensor<[N, M], f32> -> !graph.tensor<[M, N], f32>
// CHECK-NEXT:       %6 = graph.ew<add> %5, %4 : !graph.tensor<[M, N], f32>, !graph.tensor<[M, N], f32> -> !graph.tensor<[M, N], f32>
// CHECK-NEXT:       schedule.yield %6 : !graph.tensor<[M, N], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %2 : !graph.tensor<[M, N], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @rope(%0: !graph.tensor<[B, S, 3, 8], f32>, %1: !graph.tensor<[S, 1, 8], f32>, %2: !graph.tensor<[S, 1, 8], f32>) -> (!graph.tensor<[B, S, 3, 8], f32>) {
// CHECK-NEXT:     %3 = schedule.region<pointwise> <block = [1, 1, 3, 8]> (%4 : !graph.tensor<[B, S, 3, 8], f32> = %0, %5 : !graph.tensor<[S, 1, 8], f32> = %1, %6 : !graph.tensor<[S, 1, 8], f32> = %2) -> (!graph.tensor<[B, S, 3, 8], f32>) {
// CHECK-NEXT:       %7 = graph.iota 0 : !graph.tensor<[4], i64>
// CHECK-NEXT:       %8 = graph.iota 0 : !graph.tensor<[4], i64>
// CHECK-NEXT:       %9 = graph.gather %4[%7], [3] : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[4], i64> -> !graph.tensor<[B, S, 3, 4], f32>
// CHECK-NEXT:       %10 = graph.constant !graph.tensor<[4], i64> = [4]
// CHECK-NEXT:       %11 = graph.ew<add> %8, %10 : !graph.tensor<[4], i64>, !graph.tensor<[4], i64> -> !graph.tensor<[4], i64>
// CHECK-NEXT:       %12 = graph.gather %4[%11], [3] : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[4], i64> -> !graph.tensor<[B, S, 3, 4], f32>
// CHECK-NEXT:       %13 = graph.ew<neg> %12 : !graph.tensor<[B, S, 3, 4], f32> -> !graph.tensor<[B, S, 3, 4], f32>
// CHECK-NEXT:       %14 = graph.concatenate %13, %9 axis 3 : !graph.tensor<[B, S, 3, 4], f32>, !graph.tensor<[B, S, 3, 4], f32> -> !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:       %15 = graph.broadcast %5 : !graph.tensor<[S, 1, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:       %16 = graph.ew<mul> %4, %15 : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:       %17 = graph.broadcast %6 : !graph.tensor<[S, 1, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:       %18 = graph.ew<mul> %14, %17 : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:       %19 = graph.ew<add> %16, %18 : !graph.tensor<[B, S, 3, 8], f32>, !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:       schedule.yield %19 : !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %3 : !graph.tensor<[B, S, 3, 8], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
