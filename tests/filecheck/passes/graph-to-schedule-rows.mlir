// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// Rows that are folded, with everything around them that has the same rows: one region each, and no reduction is done twice.
graph.func @softmax(%0: !graph.tensor<[M, 1000], f32>) -> (!graph.tensor<[M, 1000], f32>) {
  %1 = graph.reduce<max> %0, [1] keepdims : !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1], f32>
  %2 = graph.broadcast %1 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1000], f32>
  %3 = graph.ew<sub> %0, %2 : !graph.tensor<[M, 1000], f32>, !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1000], f32>
  %4 = graph.ew<exp> %3 : !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1000], f32>
  %5 = graph.reduce<sum> %4, [1] keepdims : !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1], f32>
  %6 = graph.broadcast %5 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1000], f32>
  %7 = graph.ew<div> %4, %6 : !graph.tensor<[M, 1000], f32>, !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1000], f32>
  graph.return %7 : !graph.tensor<[M, 1000], f32>
}
graph.func @layernorm(%0: !graph.tensor<[M, 64], f32>, %1: !graph.tensor<[M, 64], f32>, %2: !graph.tensor<[64], f32>, %3: !graph.tensor<[64], f32>) -> (!graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32>) {
  %4 = graph.ew<add> %0, %1 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
  %5 = graph.reduce<sum> %4, [1] keepdims : !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 1], f32>
  %6 = graph.constant !graph.tensor<[M, 1], f32> = [64.0]
  %7 = graph.ew<div> %5, %6 : !graph.tensor<[M, 1], f32>, !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1], f32>
  %8 = graph.broadcast %7 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 64], f32>
  %9 = graph.ew<sub> %4, %8 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
  %10 = graph.ew<mul> %9, %9 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
  %11 = graph.reduce<sum> %10, [1] keepdims : !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 1], f32>
  %12 = graph.constant !graph.tensor<[M, 1], f32> = [64.0]
  %13 = graph.ew<div> %11, %12 : !graph.tensor<[M, 1], f32>, !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1], f32>
  %14 = graph.constant !graph.tensor<[M, 1], f32> = [9.999999747378752e-06]
  %15 = graph.ew<add> %13, %14 : !graph.tensor<[M, 1], f32>, !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1], f32>
  %16 = graph.ew<rsqrt> %15 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1], f32>
  %17 = graph.broadcast %16 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 64], f32>
  %18 = graph.ew<mul> %9, %17 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
  %19 = graph.broadcast %2 : !graph.tensor<[64], f32> -> !graph.tensor<[M, 64], f32>
  %20 = graph.ew<mul> %18, %19 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
  %21 = graph.broadcast %3 : !graph.tensor<[64], f32> -> !graph.tensor<[M, 64], f32>
  %22 = graph.ew<add> %20, %21 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
  graph.return %22, %4 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @softmax(%0: !graph.tensor<[M, 1000], f32>) -> (!graph.tensor<[M, 1000], f32>) {
// CHECK-NEXT:     %1 = schedule.region<rows> <block = [16, 1000]> (%2 : !graph.tensor<[M, 1000], f32> = %0) -> (!graph.tensor<[M, 1000], f32>) {
// CHECK-NEXT:       %3 = graph.reduce<max> %2, [1] keepdims : !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1], f32>
// CHECK-NEXT:       %4 = graph.broadcast %3 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1000], f32>
// CHECK-NEXT:       %5 = graph.ew<sub> %2, %4 : !graph.tensor<[M, 1000], f32>, !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1000], f32>
// CHECK-NEXT:       %6 = graph.ew<exp> %5 : !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1000], f32>
// CHECK-NEXT:       %7 = graph.reduce<sum> %6, [1] keepdims : !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1], f32>
// CHECK-NEXT:       %8 = graph.broadcast %7 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1000], f32>
// CHECK-NEXT:       %9 = graph.ew<div> %6, %8 : !graph.tensor<[M, 1000], f32>, !graph.tensor<[M, 1000], f32> -> !graph.tensor<[M, 1000], f32>
// CHECK-NEXT:       schedule.yield %9 : !graph.tensor<[M, 1000], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %1 : !graph.tensor<[M, 1000], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @layernorm(%0: !graph.tensor<[M, 64], f32>, %1: !graph.tensor<[M, 64], f32>, %2: !graph.tensor<[64], f32>, %3: !graph.tensor<[64], f32>) -> (!graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32>) {
// CHECK-NEXT:     %4, %5 = schedule.region<rows> <block = [16, 64]> (%6 : !graph.tensor<[M, 64], f32> = %0, %7 : !graph.tensor<[M, 64], f32> = %1, %8 : !graph.tensor<[64], f32> = %2, %9 : !graph.tensor<[64], f32> = %3) -> (!graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32>) {
// CHECK-NEXT:       %10 = graph.ew<add> %6, %7 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %11 = graph.reduce<sum> %10, [1] keepdims : !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 1], f32>
// CHECK-NEXT:       %12 = graph.constant !graph.tensor<[M, 1], f32> = [64.0]
// CHECK-NEXT:       %13 = graph.ew<div> %11, %12 : !graph.tensor<[M, 1], f32>, !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1], f32>
// CHECK-NEXT:       %14 = graph.broadcast %13 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %15 = graph.ew<sub> %10, %14 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %16 = graph.ew<mul> %15, %15 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %17 = graph.reduce<sum> %16, [1] keepdims : !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 1], f32>
// CHECK-NEXT:       %18 = graph.constant !graph.tensor<[M, 1], f32> = [64.0]
// CHECK-NEXT:       %19 = graph.ew<div> %17, %18 : !graph.tensor<[M, 1], f32>, !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1], f32>
// CHECK-NEXT:       %20 = graph.constant !graph.tensor<[M, 1], f32> = [9.999999747378752e-06]
// CHECK-NEXT:       %21 = graph.ew<add> %19, %20 : !graph.tensor<[M, 1], f32>, !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1], f32>
// CHECK-NEXT:       %22 = graph.ew<rsqrt> %21 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 1], f32>
// CHECK-NEXT:       %23 = graph.broadcast %22 : !graph.tensor<[M, 1], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %24 = graph.ew<mul> %15, %23 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %25 = graph.broadcast %8 : !graph.tensor<[64], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %26 = graph.ew<mul> %24, %25 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %27 = graph.broadcast %9 : !graph.tensor<[64], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       %28 = graph.ew<add> %26, %27 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32> -> !graph.tensor<[M, 64], f32>
// CHECK-NEXT:       schedule.yield %10, %28 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %5, %4 : !graph.tensor<[M, 64], f32>, !graph.tensor<[M, 64], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
