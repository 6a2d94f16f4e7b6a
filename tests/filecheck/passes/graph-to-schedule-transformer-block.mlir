// RUN: tessera opt %s -p canonicalize,cse,dce | filecheck %s --check-prefix=GRAPH
// RUN: tessera opt %s -p canonicalize,cse,dce,graph-to-schedule --level schedule | filecheck %s --check-prefix=SCHEDULE
// The specification's transformer block as it is traced (tests/lang/transformer_block.py): norms, matmuls and softmax
// are algebra, and become eight kernels; what attends is one of them.
graph.func @main(%x: !graph.tensor<[B, S, 32], f32>, %params__Wmlp_in: !graph.tensor<[32, 128], f32>, %params__Wmlp_out: !graph.tensor<[128, 32], f32>, %params__Wo: !graph.tensor<[32, 32], f32>, %params__Wqkv: !graph.tensor<[32, 96], f32>, %cache: !graph.tensor<[B, 4, T, 8], f32>, %cache_1: !graph.tensor<[B, 4, T, 8], f32>) -> (!graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>) {
  %0 = graph.ew<mul> %x, %x : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 32], f32>
  %1 = graph.reduce<sum> %0, [2] keepdims : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 1], f32>
  %2 = graph.constant !graph.tensor<[], f32> = [32.0]
  %3 = graph.broadcast %2 : !graph.tensor<[], f32> -> !graph.tensor<[B, S, 1], f32>
  %4 = graph.ew<div> %1, %3 : !graph.tensor<[B, S, 1], f32>, !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
  %5 = graph.constant !graph.tensor<[], f32> = [9.999999974752427e-07]
  %6 = graph.broadcast %5 : !graph.tensor<[], f32> -> !graph.tensor<[B, S, 1], f32>
  %7 = graph.ew<add> %4, %6 : !graph.tensor<[B, S, 1], f32>, !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
  %8 = graph.ew<rsqrt> %7 : !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
  %9 = graph.broadcast %8 : !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 32], f32>
  %10 = graph.ew<mul> %x, %9 : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 32], f32>
  %11 = graph.matmul %10, %params__Wqkv : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[32, 96], f32> -> !graph.tensor<[B, S, 96], f32>
  %12 = graph.slice %11 [0, 0, 0] to [9223372036854775807, 9223372036854775807, 32] by [1, 1, 1] : !graph.tensor<[B, S, 96], f32> -> !graph.tensor<[B, S, 32], f32>
  %13 = graph.reshape %12 : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 4, 8], f32>
  %14 = graph.transpose %13, [0, 2, 1, 3] : !graph.tensor<[B, S, 4, 8], f32> -> !graph.tensor<[B, 4, S, 8], f32>
  %15 = graph.slice %11 [0, 0, 32] to [9223372036854775807, 9223372036854775807, 64] by [1, 1, 1] : !graph.tensor<[B, S, 96], f32> -> !graph.tensor<[B, S, 32], f32>
  %16 = graph.reshape %15 : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 4, 8], f32>
  %17 = graph.transpose %16, [0, 2, 1, 3] : !graph.tensor<[B, S, 4, 8], f32> -> !graph.tensor<[B, 4, S, 8], f32>
  %18 = graph.slice %11 [0, 0, 64] to [9223372036854775807, 9223372036854775807, 96] by [1, 1, 1] : !graph.tensor<[B, S, 96], f32> -> !graph.tensor<[B, S, 32], f32>
  %19 = graph.reshape %18 : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 4, 8], f32>
  %20 = graph.transpose %19, [0, 2, 1, 3] : !graph.tensor<[B, S, 4, 8], f32> -> !graph.tensor<[B, 4, S, 8], f32>
  %21 = graph.concatenate %cache, %17 axis 2 : !graph.tensor<[B, 4, T, 8], f32>, !graph.tensor<[B, 4, S, 8], f32> -> !graph.tensor<[B, 4, "S + T", 8], f32>
  %22 = graph.concatenate %cache_1, %20 axis 2 : !graph.tensor<[B, 4, T, 8], f32>, !graph.tensor<[B, 4, S, 8], f32> -> !graph.tensor<[B, 4, "S + T", 8], f32>
  %23 = graph.transpose %21, [0, 1, 3, 2] : !graph.tensor<[B, 4, "S + T", 8], f32> -> !graph.tensor<[B, 4, 8, "S + T"], f32>
  %24 = graph.matmul %14, %23 : !graph.tensor<[B, 4, S, 8], f32>, !graph.tensor<[B, 4, 8, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %25 = graph.constant !graph.tensor<[], f32> = [0.3535533845424652]
  %26 = graph.broadcast %25 : !graph.tensor<[], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %27 = graph.ew<mul> %24, %26 : !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %28 = graph.iota 2 : !graph.tensor<[B, 4, S, "S + T"], i64>
  %29 = graph.iota 3 : !graph.tensor<[B, 4, S, "S + T"], i64>
  %30 = graph.constant !graph.tensor<[T], i64> = [1]
  %31 = graph.reduce<sum> %30, [0] : !graph.tensor<[T], i64> -> !graph.tensor<[], i64>
  %32 = graph.broadcast %31 : !graph.tensor<[], i64> -> !graph.tensor<[B, 4, S, "S + T"], i64>
  %33 = graph.ew<add> %28, %32 : !graph.tensor<[B, 4, S, "S + T"], i64>, !graph.tensor<[B, 4, S, "S + T"], i64> -> !graph.tensor<[B, 4, S, "S + T"], i64>
  %34 = graph.ew<ge> %33, %29 : !graph.tensor<[B, 4, S, "S + T"], i64>, !graph.tensor<[B, 4, S, "S + T"], i64> -> !graph.tensor<[B, 4, S, "S + T"], i1>
  %35 = graph.constant !graph.tensor<[], f32> = [0xff800000]
  %36 = graph.broadcast %35 : !graph.tensor<[], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %37 = graph.ew<select> %34, %27, %36 : !graph.tensor<[B, 4, S, "S + T"], i1>, !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %38 = graph.reduce<max> %37, [3] keepdims : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, 1], f32>
  %39 = graph.constant !graph.tensor<[], f32> = [0xff800000]
  %40 = graph.broadcast %39 : !graph.tensor<[], f32> -> !graph.tensor<[B, 4, S, 1], f32>
  %41 = graph.ew<eq> %38, %40 : !graph.tensor<[B, 4, S, 1], f32>, !graph.tensor<[B, 4, S, 1], f32> -> !graph.tensor<[B, 4, S, 1], i1>
  %42 = graph.constant !graph.tensor<[], f32> = [0.0]
  %43 = graph.broadcast %42 : !graph.tensor<[], f32> -> !graph.tensor<[B, 4, S, 1], f32>
  %44 = graph.ew<select> %41, %43, %38 : !graph.tensor<[B, 4, S, 1], i1>, !graph.tensor<[B, 4, S, 1], f32>, !graph.tensor<[B, 4, S, 1], f32> -> !graph.tensor<[B, 4, S, 1], f32>
  %45 = graph.broadcast %44 : !graph.tensor<[B, 4, S, 1], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %46 = graph.ew<sub> %37, %45 : !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %47 = graph.ew<exp> %46 : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %48 = graph.reduce<sum> %47, [3] keepdims : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, 1], f32>
  %49 = graph.constant !graph.tensor<[], f32> = [0.0]
  %50 = graph.broadcast %49 : !graph.tensor<[], f32> -> !graph.tensor<[B, 4, S, 1], f32>
  %51 = graph.ew<eq> %48, %50 : !graph.tensor<[B, 4, S, 1], f32>, !graph.tensor<[B, 4, S, 1], f32> -> !graph.tensor<[B, 4, S, 1], i1>
  %52 = graph.constant !graph.tensor<[], f32> = [1.0]
  %53 = graph.broadcast %52 : !graph.tensor<[], f32> -> !graph.tensor<[B, 4, S, 1], f32>
  %54 = graph.ew<select> %51, %53, %48 : !graph.tensor<[B, 4, S, 1], i1>, !graph.tensor<[B, 4, S, 1], f32>, !graph.tensor<[B, 4, S, 1], f32> -> !graph.tensor<[B, 4, S, 1], f32>
  %55 = graph.broadcast %54 : !graph.tensor<[B, 4, S, 1], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %56 = graph.ew<div> %47, %55 : !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
  %57 = graph.matmul %56, %22 : !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, "S + T", 8], f32> -> !graph.tensor<[B, 4, S, 8], f32>
  %58 = graph.transpose %57, [0, 2, 1, 3] : !graph.tensor<[B, 4, S, 8], f32> -> !graph.tensor<[B, S, 4, 8], f32>
  %59 = graph.reshape %58 : !graph.tensor<[B, S, 4, 8], f32> -> !graph.tensor<[B, S, 32], f32>
  %60 = graph.matmul %59, %params__Wo : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[32, 32], f32> -> !graph.tensor<[B, S, 32], f32>
  %61 = graph.ew<add> %x, %60 : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 32], f32>
  %62 = graph.ew<mul> %61, %61 : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 32], f32>
  %63 = graph.reduce<sum> %62, [2] keepdims : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 1], f32>
  %64 = graph.constant !graph.tensor<[], f32> = [32.0]
  %65 = graph.broadcast %64 : !graph.tensor<[], f32> -> !graph.tensor<[B, S, 1], f32>
  %66 = graph.ew<div> %63, %65 : !graph.tensor<[B, S, 1], f32>, !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
  %67 = graph.constant !graph.tensor<[], f32> = [9.999999974752427e-07]
  %68 = graph.broadcast %67 : !graph.tensor<[], f32> -> !graph.tensor<[B, S, 1], f32>
  %69 = graph.ew<add> %66, %68 : !graph.tensor<[B, S, 1], f32>, !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
  %70 = graph.ew<rsqrt> %69 : !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
  %71 = graph.broadcast %70 : !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 32], f32>
  %72 = graph.ew<mul> %61, %71 : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 32], f32>
  %73 = graph.matmul %72, %params__Wmlp_in : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[32, 128], f32> -> !graph.tensor<[B, S, 128], f32>
  %74 = graph.constant !graph.tensor<[], f32> = [0.5]
  %75 = graph.broadcast %74 : !graph.tensor<[], f32> -> !graph.tensor<[B, S, 128], f32>
  %76 = graph.ew<mul> %73, %75 : !graph.tensor<[B, S, 128], f32>, !graph.tensor<[B, S, 128], f32> -> !graph.tensor<[B, S, 128], f32>
  %77 = graph.constant !graph.tensor<[], f32> = [0.7071067690849304]
  %78 = graph.broadcast %77 : !graph.tensor<[], f32> -> !graph.tensor<[B, S, 128], f32>
  %79 = graph.ew<mul> %73, %78 : !graph.tensor<[B, S, 128], f32>, !graph.tensor<[B, S, 128], f32> -> !graph.tensor<[B, S, 128], f32>
  %80 = graph.ew<erf> %79 : !graph.tensor<[B, S, 128], f32> -> !graph.tensor<[B, S, 128], f32>
  %81 = graph.constant !graph.tensor<[], f32> = [1.0]
  %82 = graph.broadcast %81 : !graph.tensor<[], f32> -> !graph.tensor<[B, S, 128], f32>
  %83 = graph.ew<add> %80, %82 : !graph.tensor<[B, S, 128], f32>, !graph.tensor<[B, S, 128], f32> -> !graph.tensor<[B, S, 128], f32>
  %84 = graph.ew<mul> %76, %83 : !graph.tensor<[B, S, 128], f32>, !graph.tensor<[B, S, 128], f32> -> !graph.tensor<[B, S, 128], f32>
  %85 = graph.matmul %84, %params__Wmlp_out : !graph.tensor<[B, S, 128], f32>, !graph.tensor<[128, 32], f32> -> !graph.tensor<[B, S, 32], f32>
  %86 = graph.ew<add> %61, %85 : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 32], f32>
  graph.return %86, %21, %22 : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>
}

// GRAPH: graph.func @main(%x: !graph.tensor<[B, S, 32], f32>, %params__Wmlp_in: !graph.tensor<[32, 128], f32>, %params__Wmlp_out: !graph.tensor<[128, 32], f32>, %params__Wo: !graph.tensor<[32, 32], f32>, %params__Wqkv: !graph.tensor<[32, 96], f32>, %cache: !graph.tensor<[B, 4, T, 8], f32>, %cache_1: !graph.tensor<[B, 4, T, 8], f32>) -> (!graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>) {
// GRAPH: %1 = graph.reduce<sum> %0, [2] keepdims : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 1], f32>
// GRAPH: %4 = graph.ew<div> %1, %3 : !graph.tensor<[B, S, 1], f32>, !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
// GRAPH: %8 = graph.ew<rsqrt> %7 : !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
// GRAPH: %11 = graph.matmul %10, %params__Wqkv : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[32, 96], f32> -> !graph.tensor<[B, S, 96], f32>
// GRAPH: %21 = graph.concatenate %cache, %17 axis 2 : !graph.tensor<[B, 4, T, 8], f32>, !graph.tensor<[B, 4, S, 8], f32> -> !graph.tensor<[B, 4, "S + T", 8], f32>
// GRAPH-NEXT:     %22 = graph.concatenate %cache_1, %20 axis 2 : !graph.tensor<[B, 4, T, 8], f32>, !graph.tensor<[B, 4, S, 8], f32> -> !graph.tensor<[B, 4, "S + T", 8], f32>
// GRAPH: %24 = graph.matmul %14, %23 : !graph.tensor<[B, 4, S, 8], f32>, !graph.tensor<[B, 4, 8, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
// GRAPH: %31 = graph.reduce<sum> %30, [0] : !graph.tensor<[T], i64> -> !graph.tensor<[], i64>
// GRAPH: %37 = graph.ew<select> %34, %27, %36 : !graph.tensor<[B, 4, S, "S + T"], i1>, !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
// GRAPH-NEXT:     %38 = graph.reduce<max> %37, [3] keepdims : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, 1], f32>
// GRAPH: %43 = graph.ew<select> %40, %42, %38 : !graph.tensor<[B, 4, S, 1], i1>, !graph.tensor<[B, 4, S, 1], f32>, !graph.tensor<[B, 4, S, 1], f32> -> !graph.tensor<[B, 4, S, 1], f32>
// GRAPH: %46 = graph.ew<exp> %45 : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
// GRAPH-NEXT:     %47 = graph.reduce<sum> %46, [3] keepdims : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, 1], f32>
// GRAPH: %51 = graph.ew<select> %48, %50, %47 : !graph.tensor<[B, 4, S, 1], i1>, !graph.tensor<[B, 4, S, 1], f32>, !graph.tensor<[B, 4, S, 1], f32> -> !graph.tensor<[B, 4, S, 1], f32>
// GRAPH: %53 = graph.ew<div> %46, %52 : !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
// GRAPH-NEXT:     %54 = graph.matmul %53, %22 : !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, "S + T", 8], f32> -> !graph.tensor<[B, 4, S, 8], f32>
// GRAPH: %57 = graph.matmul %56, %params__Wo : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[32, 32], f32> -> !graph.tensor<[B, S, 32], f32>
// GRAPH: %60 = graph.reduce<sum> %59, [2] keepdims : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 1], f32>
// GRAPH-NEXT:     %61 = graph.ew<div> %60, %3 : !graph.tensor<[B, S, 1], f32>, !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
// GRAPH: %63 = graph.ew<rsqrt> %62 : !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
// GRAPH: %66 = graph.matmul %65, %params__Wmlp_in : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[32, 128], f32> -> !graph.tensor<[B, S, 128], f32>
// GRAPH: %73 = graph.ew<erf> %72 : !graph.tensor<[B, S, 128], f32> -> !graph.tensor<[B, S, 128], f32>
// GRAPH: %77 = graph.matmul %76, %params__Wmlp_out : !graph.tensor<[B, S, 128], f32>, !graph.tensor<[128, 32], f32> -> !graph.tensor<[B, S, 32], f32>
// GRAPH: graph.return %78, %21, %22 : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>
// GRAPH-NOT: graph.matmul

// SCHEDULE: graph.func @main(%x: !graph.tensor<[B, S, 32], f32>, %params__Wmlp_in: !graph.tensor<[32, 128], f32>, %params__Wmlp_out: !graph.tensor<[128, 32], f32>, %params__Wo: !graph.tensor<[32, 32], f32>, %params__Wqkv: !graph.tensor<[32, 96], f32>, %cache: !graph.tensor<[B, 4, T, 8], f32>, %cache_1: !graph.tensor<[B, 4, T, 8], f32>) -> (!graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>) {
// SCHEDULE-NEXT:     %0 = schedule.region<rows> <block = [1, 16, 32]> (%x_1 : !graph.tensor<[B, S, 32], f32> = %x) -> (!graph.tensor<[B, S, 32], f32>) {
// SCHEDULE: %2 = graph.reduce<sum> %1, [2] keepdims : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 1], f32>
// SCHEDULE: %9 = graph.ew<rsqrt> %8 : !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
// SCHEDULE: schedule.yield %11 : !graph.tensor<[B, S, 32], f32>
// SCHEDULE: %2 = schedule.region<matmul> <> (%3 : !graph.tensor<["B*S", 32], f32> = %1, %params__Wqkv_1 : !graph.tensor<[32, 96], f32> = %params__Wqkv) -> (!graph.tensor<["B*S", 96], f32>) {
// SCHEDULE-NEXT:       %4 = graph.matmul %3, %params__Wqkv_1 : !graph.tensor<["B*S", 32], f32>, !graph.tensor<[32, 96], f32> -> !graph.tensor<["B*S", 96], f32>
// SCHEDULE-NEXT:       schedule.yield %4 : !graph.tensor<["B*S", 96], f32>
// SCHEDULE: %4, %5 = schedule.region<pointwise> <block = [1, 1, 64, 8]> (%6 : !graph.tensor<[B, S, 96], f32> = %3, %cache_2 : !graph.tensor<[B, 4, T, 8], f32> = %cache, %cache_3 : !graph.tensor<[B, 4, T, 8], f32> = %cache_1) -> (!graph.tensor<[B, 4, "S + T", 8], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>) {
// SCHEDULE: schedule.yield %10, %14 : !graph.tensor<[B, 4, "S + T", 8], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>
// SCHEDULE: %6 = schedule.region<online> <> (%7 : !graph.tensor<[B, S, 96], f32> = %3, %8 : !graph.tensor<[B, 4, "S + T", 8], f32> = %4, %9 : !graph.tensor<[B, 4, "S + T", 8], f32> = %5) -> (!graph.tensor<[B, S, 32], f32>) {
// SCHEDULE: %14 = graph.matmul %12, %13 : !graph.tensor<[B, 4, S, 8], f32>, !graph.tensor<[B, 4, 8, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
// SCHEDULE: %21 = graph.reduce<sum> %20, [0] : !graph.tensor<[T], i64> -> !graph.tensor<[], i64>
// SCHEDULE: %28 = graph.reduce<max> %27, [3] keepdims : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, 1], f32>
// SCHEDULE: %36 = graph.ew<exp> %35 : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, "S + T"], f32>
// SCHEDULE-NEXT:       %37 = graph.reduce<sum> %36, [3] keepdims : !graph.tensor<[B, 4, S, "S + T"], f32> -> !graph.tensor<[B, 4, S, 1], f32>
// SCHEDULE: %44 = graph.matmul %43, %9 : !graph.tensor<[B, 4, S, "S + T"], f32>, !graph.tensor<[B, 4, "S + T", 8], f32> -> !graph.tensor<[B, 4, S, 8], f32>
// SCHEDULE: schedule.yield %46 : !graph.tensor<[B, S, 32], f32>
// SCHEDULE: %9 = schedule.region<matmul> <> (%10 : !graph.tensor<["B*S", 32], f32> = %7, %params__Wo_1 : !graph.tensor<[32, 32], f32> = %params__Wo, %11 : !graph.tensor<["B*S", 32], f32> = %8) -> (!graph.tensor<["B*S", 32], f32>) {
// SCHEDULE-NEXT:       %12 = graph.matmul %10, %params__Wo_1 : !graph.tensor<["B*S", 32], f32>, !graph.tensor<[32, 32], f32> -> !graph.tensor<["B*S", 32], f32>
// SCHEDULE: schedule.yield %13 : !graph.tensor<["B*S", 32], f32>
// SCHEDULE: %10 = schedule.region<rows> <block = [1, 16, 32]> (%11 : !graph.tensor<["B*S", 32], f32> = %9) -> (!graph.tensor<[B, S, 32], f32>) {
// SCHEDULE: %18 = graph.reduce<sum> %17, [2] keepdims : !graph.tensor<[B, S, 32], f32> -> !graph.tensor<[B, S, 1], f32>
// SCHEDULE: %21 = graph.ew<rsqrt> %20 : !graph.tensor<[B, S, 1], f32> -> !graph.tensor<[B, S, 1], f32>
// SCHEDULE: schedule.yield %23 : !graph.tensor<[B, S, 32], f32>
// SCHEDULE: %12 = schedule.region<matmul> <> (%13 : !graph.tensor<["B*S", 32], f32> = %11, %params__Wmlp_in_1 : !graph.tensor<[32, 128], f32> = %params__Wmlp_in) -> (!graph.tensor<["B*S", 128], f32>) {
// SCHEDULE: %15 = graph.matmul %13, %params__Wmlp_in_1 : !graph.tensor<["B*S", 32], f32>, !graph.tensor<[32, 128], f32> -> !graph.tensor<["B*S", 128], f32>
// SCHEDULE: %22 = graph.ew<erf> %21 : !graph.tensor<["B*S", 128], f32> -> !graph.tensor<["B*S", 128], f32>
// SCHEDULE: schedule.yield %25 : !graph.tensor<["B*S", 128], f32>
// SCHEDULE: %13 = schedule.region<matmul> <> (%14 : !graph.tensor<["B*S", 128], f32> = %12, %params__Wmlp_out_1 : !graph.tensor<[128, 32], f32> = %params__Wmlp_out, %15 : !graph.tensor<["B*S", 32], f32> = %9) -> (!graph.tensor<["B*S", 32], f32>) {
// SCHEDULE-NEXT:       %16 = graph.matmul %14, %params__Wmlp_out_1 : !graph.tensor<["B*S", 128], f32>, !graph.tensor<[128, 32], f32> -> !graph.tensor<["B*S", 32], f32>
// SCHEDULE: schedule.yield %17 : !graph.tensor<["B*S", 32], f32>
// SCHEDULE: graph.return %14, %4, %5 : !graph.tensor<[B, S, 32], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>, !graph.tensor<[B, 4, "S + T", 8], f32>
// SCHEDULE-NOT: schedule.region
