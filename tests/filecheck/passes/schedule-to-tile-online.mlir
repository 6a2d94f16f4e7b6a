// RUN: tessera opt %s -p "graph-to-schedule,schedule-to-tile,canonicalize,cse" --level tile | filecheck %s
// One loop over blocks of keys. Queries, keys and values are boxes of one array; heads are stored side by side in the
// rows of the result.
graph.func @f(%x: !graph.tensor<[B, S, 96], f32>) -> (!graph.tensor<[B, S, 32], f32>) {
  %split = graph.reshape %x : !graph.tensor<[B, S, 96], f32> -> !graph.tensor<[B, S, 3, 2, 16], f32>
  %parts = graph.transpose %split, [2, 0, 3, 1, 4] : !graph.tensor<[B, S, 3, 2, 16], f32> -> !graph.tensor<[3, B, 2, S, 16], f32>
  %q1 = graph.slice %parts [0, 0, 0, 0, 0] to [1, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
  %k1 = graph.slice %parts [1, 0, 0, 0, 0] to [2, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
  %v1 = graph.slice %parts [2, 0, 0, 0, 0] to [3, 9223372036854775807, 2, 9223372036854775807, 16] by [1, 1, 1, 1, 1] : !graph.tensor<[3, B, 2, S, 16], f32> -> !graph.tensor<[1, B, 2, S, 16], f32>
  %q = graph.reshape %q1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
  %k = graph.reshape %k1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
  %v = graph.reshape %v1 : !graph.tensor<[1, B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
  %t = graph.transpose %k, [0, 1, 3, 2] : !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, 2, 16, S], f32>
  %scores = graph.matmul %q, %t : !graph.tensor<[B, 2, S, 16], f32>, !graph.tensor<[B, 2, 16, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %top = graph.reduce<max> %scores, [3] keepdims : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, 1], f32>
  %tops = graph.broadcast %top : !graph.tensor<[B, 2, S, 1], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %less = graph.ew<sub> %scores, %tops : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %weights = graph.ew<exp> %less : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %sum = graph.reduce<sum> %weights, [3] keepdims : !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, 1], f32>
  %sums = graph.broadcast %sum : !graph.tensor<[B, 2, S, 1], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %shares = graph.ew<div> %weights, %sums : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, S], f32> -> !graph.tensor<[B, 2, S, S], f32>
  %heads = graph.matmul %shares, %v : !graph.tensor<[B, 2, S, S], f32>, !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, 2, S, 16], f32>
  %transposed = graph.transpose %heads, [0, 2, 1, 3] : !graph.tensor<[B, 2, S, 16], f32> -> !graph.tensor<[B, S, 2, 16], f32>
  %y = graph.reshape %transposed : !graph.tensor<[B, S, 2, 16], f32> -> !graph.tensor<[B, S, 32], f32>
  graph.return %y : !graph.tensor<[B, S, 32], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%x: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[B, S, 96], [B, S, 32]] grid ["(S + 63)//64", "2*B"] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = arith.constant 64 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %3 = tile.program_id 1
// CHECK-NEXT:     %4 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %5 = arith.constant 0xff800000 : f32
// CHECK-NEXT:     %6 = arith.constant 2 : index
// CHECK-NEXT:     %7 = arith.floordivsi %3, %6 : index
// CHECK-NEXT:     %8 = arith.muli %7, %6 : index
// CHECK-NEXT:     %9 = arith.subi %3, %8 : index
// CHECK-NEXT:     %10 = arith.constant 16 : index
// CHECK-NEXT:     %11 = arith.muli %9, %10 : index
// CHECK-NEXT:     %12 = tile.stride %x, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %13 = arith.muli %7, %12 : index
// CHECK-NEXT:     %14 = tile.dim %x, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %15 = arith.constant 96 : index
// CHECK-NEXT:     %16 = tile.stride %x, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %17 = tile.stride %x, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %18 = tile.view %x offset %13 sizes[%14, %15] strides[%16, %17] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     %19 = tile.load %18[%2, %11] : !tile.view<2, f32, global> -> tensor<64x16xf32>
// CHECK-NEXT:     %20 = tile.full %4 : tensor<64x16xf32>
// CHECK-NEXT:     %21 = tile.full %5 : tensor<64xf32>
// CHECK-NEXT:     %22 = tile.full %4 : tensor<64xf32>
// CHECK-NEXT:     %23 = arith.constant 0 : index
// CHECK-NEXT:     %24 = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:     %25 = arith.constant 32 : index
// CHECK-NEXT:     %26 = arith.addi %11, %25 : index
// CHECK-NEXT:     %27 = arith.index_cast %14 : index to i64
// CHECK-NEXT:     %28 = arith.addi %11, %1 : index
// CHECK-NEXT:     %29, %30, %31 = scf.for %32 = %23 to %14 step %1 iter_args(%33 = %20, %34 = %21, %35 = %22) -> (tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>) {
// CHECK-NEXT:       %36 = tile.load %18[%32, %26] : !tile.view<2, f32, global> -> tensor<64x16xf32>
// CHECK-NEXT:       %37 = tile.trans %36, [1, 0] : tensor<64x16xf32> -> tensor<16x64xf32>
// CHECK-NEXT:       %38 = tile.full %4 : tensor<64x64xf32>
// CHECK-NEXT:       %39 = tile.dot %19, %37, %38 : tensor<64x16xf32>, tensor<16x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:       %40 = tile.iota %32, 0 : tensor<64xi64>
// CHECK-NEXT:       %41 = tile.full %27 : tensor<64xi64>
// CHECK-NEXT:       %42 = tile.ew<lt> %40, %41 : tensor<64xi64>, tensor<64xi64> -> tensor<64xi1>
// CHECK-NEXT:       %43 = tile.expand %42, 0 : tensor<64xi1> -> tensor<1x64xi1>
// CHECK-NEXT:       %44 = tile.broadcast %43 : tensor<1x64xi1> -> tensor<64x64xi1>
// CHECK-NEXT:       %45 = tile.full %5 : tensor<64x64xf32>
// CHECK-NEXT:       %46 = tile.ew<select> %44, %39, %45 : tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:       %47 = tile.reduce<top> %46, 1 : tensor<64x64xf32> -> tensor<64xf32>
// CHECK-NEXT:       %48 = tile.load %18[%32, %28] : !tile.view<2, f32, global> -> tensor<64x16xf32>
// CHECK-NEXT:       %49 = tile.ew<max> %34, %47 : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:       %50 = tile.ew<eq> %49, %21 : tensor<64xf32>, tensor<64xf32> -> tensor<64xi1>
// CHECK-NEXT:       %51 = tile.ew<select> %50, %22, %49 : tensor<64xi1>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:       %52 = tile.ew<sub> %34, %51 : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:       %53 = tile.ew<exp> %52 : tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:       %54 = tile.ew<le> %47, %34 : tensor<64xf32>, tensor<64xf32> -> tensor<64xi1>
// CHECK-NEXT:       %55 = tile.full %24 : tensor<64xf32>
// CHECK-NEXT:       %56 = tile.ew<select> %54, %55, %53 : tensor<64xi1>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:       %57 = tile.expand %51, 1 : tensor<64xf32> -> tensor<64x1xf32>
// CHECK-NEXT:       %58 = tile.broadcast %57 : tensor<64x1xf32> -> tensor<64x64xf32>
// CHECK-NEXT:       %59 = tile.ew<sub> %46, %58 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:       %60 = tile.ew<exp> %59 : tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:       %61 = tile.expand %56, 1 : tensor<64xf32> -> tensor<64x1xf32>
// CHECK-NEXT:       %62 = tile.broadcast %61 : tensor<64x1xf32> -> tensor<64x16xf32>
// CHECK-NEXT:       %63 = tile.ew<mul> %33, %62 : tensor<64x16xf32>, tensor<64x16xf32> -> tensor<64x16xf32>
// CHECK-NEXT:       %64 = tile.dot %60, %48, %63 : tensor<64x64xf32>, tensor<64x16xf32>, tensor<64x16xf32> -> tensor<64x16xf32>
// CHECK-NEXT:       %65 = tile.reduce<sum> %60, 1 : tensor<64x64xf32> -> tensor<64xf32>
// CHECK-NEXT:       %66 = tile.ew<mul> %35, %56 : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:       %67 = tile.ew<add> %66, %65 : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:       scf.yield %64, %49, %67 : tensor<64x16xf32>, tensor<64xf32>, tensor<64xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %68 = tile.expand %31, 1 : tensor<64xf32> -> tensor<64x1xf32>
// CHECK-NEXT:     %69 = tile.broadcast %68 : tensor<64x1xf32> -> tensor<64x16xf32>
// CHECK-NEXT:     %70 = tile.ew<div> %29, %69 : tensor<64x16xf32>, tensor<64x16xf32> -> tensor<64x16xf32>
// CHECK-NEXT:     %71 = tile.stride %y, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %72 = arith.muli %7, %71 : index
// CHECK-NEXT:     %73 = tile.stride %y, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %74 = tile.stride %y, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %75 = tile.view %y offset %72 sizes[%14, %25] strides[%73, %74] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     tile.store %70, %75[%2, %11] : tensor<64x16xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[B, S, 96], f32>) -> (!graph.tensor<[B, S, 32], f32>) {
// CHECK-NEXT:     %y = schedule.launch @f_0 grid <["(S + 63)//64", "2*B"]> config <>(%x) : (!graph.tensor<[B, S, 96], f32>) -> !graph.tensor<[B, S, 32], f32>
// CHECK-NEXT:     graph.return %y : !graph.tensor<[B, S, 32], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
