// RUN: tessera opt %s -p "schedule-to-tile,canonicalize,cse" --level tile | filecheck %s
// Four parts of the keys, and what combines them: two launches.
graph.func @f(%q: !graph.tensor<[B, 4, 16], f32>, %k: !graph.tensor<[B, T, 16], f32>, %v: !graph.tensor<[B, T, 16], f32>) -> (!graph.tensor<[B, 4, 16], f32>) {
  %y = schedule.region<online> <block = [16, 64], split = 4> (%a : !graph.tensor<[B, 4, 16], f32> = %q, %b : !graph.tensor<[B, T, 16], f32> = %k, %c : !graph.tensor<[B, T, 16], f32> = %v) -> (!graph.tensor<[B, 4, 16], f32>) {
    %t = graph.transpose %b, [0, 2, 1] : !graph.tensor<[B, T, 16], f32> -> !graph.tensor<[B, 16, T], f32>
    %scores = graph.matmul %a, %t : !graph.tensor<[B, 4, 16], f32>, !graph.tensor<[B, 16, T], f32> -> !graph.tensor<[B, 4, T], f32>
    %top = graph.reduce<max> %scores, [2] keepdims : !graph.tensor<[B, 4, T], f32> -> !graph.tensor<[B, 4, 1], f32>
    %tops = graph.broadcast %top : !graph.tensor<[B, 4, 1], f32> -> !graph.tensor<[B, 4, T], f32>
    %less = graph.ew<sub> %scores, %tops : !graph.tensor<[B, 4, T], f32>, !graph.tensor<[B, 4, T], f32> -> !graph.tensor<[B, 4, T], f32>
    %weights = graph.ew<exp> %less : !graph.tensor<[B, 4, T], f32> -> !graph.tensor<[B, 4, T], f32>
    %sum = graph.reduce<sum> %weights, [2] keepdims : !graph.tensor<[B, 4, T], f32> -> !graph.tensor<[B, 4, 1], f32>
    %sums = graph.broadcast %sum : !graph.tensor<[B, 4, 1], f32> -> !graph.tensor<[B, 4, T], f32>
    %shares = graph.ew<div> %weights, %sums : !graph.tensor<[B, 4, T], f32>, !graph.tensor<[B, 4, T], f32> -> !graph.tensor<[B, 4, T], f32>
    %r = graph.matmul %shares, %c : !graph.tensor<[B, 4, T], f32>, !graph.tensor<[B, T, 16], f32> -> !graph.tensor<[B, 4, 16], f32>
    schedule.yield %r : !graph.tensor<[B, 4, 16], f32>
  }
  graph.return %y : !graph.tensor<[B, 4, 16], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0_parts(%q: !tile.view<3, f32, global>, %k: !tile.view<3, f32, global>, %v: !tile.view<3, f32, global>, %sums: !tile.view<4, f32, global>, %tops: !tile.view<3, f32, global>, %totals: !tile.view<3, f32, global>) outputs 3 shapes [[B, 4, 16], [B, T, 16], [B, T, 16], [4, B, 4, 16], [4, B, 4], [4, B, 4]] grid [1, B, 4] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = arith.constant 16 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %3 = tile.program_id 1
// CHECK-NEXT:     %4 = tile.program_id 2
// CHECK-NEXT:     %5 = arith.constant 64 : index
// CHECK-NEXT:     %6 = arith.muli %4, %5 : index
// CHECK-NEXT:     %7 = tile.dim %k, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %8 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %9 = arith.constant 0xff800000 : f32
// CHECK-NEXT:     %10 = tile.stride %q, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %11 = arith.muli %3, %10 : index
// CHECK-NEXT:     %12 = arith.constant 4 : index
// CHECK-NEXT:     %13 = tile.stride %q, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %14 = tile.stride %q, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %15 = tile.view %q offset %11 sizes[%12, %1] strides[%13, %14] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     %16 = arith.constant 0 : index
// CHECK-NEXT:     %17 = tile.load %15[%2, %16] : !tile.view<2, f32, global> -> tensor<16x16xf32>
// CHECK-NEXT:     %18 = tile.full %8 : tensor<16x16xf32>
// CHECK-NEXT:     %19 = tile.full %9 : tensor<16xf32>
// CHECK-NEXT:     %20 = tile.full %8 : tensor<16xf32>
// CHECK-NEXT:     %21 = arith.constant 256 : index
// CHECK-NEXT:     %22 = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:     %23 = tile.stride %k, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %24 = arith.muli %3, %23 : index
// CHECK-NEXT:     %25 = tile.stride %k, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %26 = tile.stride %k, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %27 = tile.view %k offset %24 sizes[%7, %1] strides[%25, %26] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     %28 = arith.index_cast %7 : index to i64
// CHECK-NEXT:     %29 = tile.stride %v, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %30 = arith.muli %3, %29 : index
// CHECK-NEXT:     %31 = tile.stride %v, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %32 = tile.stride %v, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %33 = tile.view %v offset %30 sizes[%7, %1] strides[%31, %32] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     %34, %35, %36 = scf.for %37 = %6 to %7 step %21 iter_args(%38 = %18, %39 = %19, %40 = %20) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
// CHECK-NEXT:       %41 = tile.load %27[%37, %16] : !tile.view<2, f32, global> -> tensor<64x16xf32>
// CHECK-NEXT:       %42 = tile.trans %41, [1, 0] : tensor<64x16xf32> -> tensor<16x64xf32>
// CHECK-NEXT:       %43 = tile.full %8 : tensor<16x64xf32>
// CHECK-NEXT:       %44 = tile.dot %17, %42, %43 : tensor<16x16xf32>, tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x64xf32>
// CHECK-NEXT:       %45 = tile.iota %37, 0 : tensor<64xi64>
// CHECK-NEXT:       %46 = tile.full %28 : tensor<64xi64>
// CHECK-NEXT:       %47 = tile.ew<lt> %45, %46 : tensor<64xi64>, tensor<64xi64> -> tensor<64xi1>
// CHECK-NEXT:       %48 = tile.expand %47, 0 : tensor<64xi1> -> tensor<1x64xi1>
// CHECK-NEXT:       %49 = tile.broadcast %48 : tensor<1x64xi1> -> tensor<16x64xi1>
// CHECK-NEXT:       %50 = tile.full %9 : tensor<16x64xf32>
// CHECK-NEXT:       %51 = tile.ew<select> %49, %44, %50 : tensor<16x64xi1>, tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x64xf32>
// CHECK-NEXT:       %52 = tile.reduce<top> %51, 1 : tensor<16x64xf32> -> tensor<16xf32>
// CHECK-NEXT:       %53 = tile.load %33[%37, %16] : !tile.view<2, f32, global> -> tensor<64x16xf32>
// CHECK-NEXT:       %54 = tile.ew<max> %39, %52 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:       %55 = tile.ew<eq> %54, %19 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
// CHECK-NEXT:       %56 = tile.ew<select> %55, %20, %54 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:       %57 = tile.ew<sub> %39, %56 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:       %58 = tile.ew<exp> %57 : tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:       %59 = tile.ew<le> %52, %39 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
// CHECK-NEXT:       %60 = tile.full %22 : tensor<16xf32>
// CHECK-NEXT:       %61 = tile.ew<select> %59, %60, %58 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:       %62 = tile.expand %56, 1 : tensor<16xf32> -> tensor<16x1xf32>
// CHECK-NEXT:       %63 = tile.broadcast %62 : tensor<16x1xf32> -> tensor<16x64xf32>
// CHECK-NEXT:       %64 = tile.ew<sub> %51, %63 : tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x64xf32>
// CHECK-NEXT:       %65 = tile.ew<exp> %64 : tensor<16x64xf32> -> tensor<16x64xf32>
// CHECK-NEXT:       %66 = tile.expand %61, 1 : tensor<16xf32> -> tensor<16x1xf32>
// CHECK-NEXT:       %67 = tile.broadcast %66 : tensor<16x1xf32> -> tensor<16x16xf32>
// CHECK-NEXT:       %68 = tile.ew<mul> %38, %67 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:       %69 = tile.dot %65, %53, %68 : tensor<16x64xf32>, tensor<64x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:       %70 = tile.reduce<sum> %65, 1 : tensor<16x64xf32> -> tensor<16xf32>
// CHECK-NEXT:       %71 = tile.ew<mul> %40, %61 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:       %72 = tile.ew<add> %71, %70 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:       scf.yield %69, %54, %72 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %73 = tile.stride %sums, 0 : !tile.view<4, f32, global>
// CHECK-NEXT:     %74 = arith.muli %4, %73 : index
// CHECK-NEXT:     %75 = tile.stride %sums, 1 : !tile.view<4, f32, global>
// CHECK-NEXT:     %76 = arith.muli %3, %75 : index
// CHECK-NEXT:     %77 = arith.addi %74, %76 : index
// CHECK-NEXT:     %78 = tile.stride %sums, 2 : !tile.view<4, f32, global>
// CHECK-NEXT:     %79 = tile.stride %sums, 3 : !tile.view<4, f32, global>
// CHECK-NEXT:     %80 = tile.view %sums offset %77 sizes[%12, %1] strides[%78, %79] : !tile.view<4, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     tile.store %34, %80[%2, %16] : tensor<16x16xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     %81 = tile.stride %tops, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %82 = arith.muli %4, %81 : index
// CHECK-NEXT:     %83 = tile.stride %tops, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %84 = arith.muli %3, %83 : index
// CHECK-NEXT:     %85 = arith.addi %82, %84 : index
// CHECK-NEXT:     %86 = tile.stride %tops, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %87 = tile.view %tops offset %85 sizes[%12] strides[%86] : !tile.view<3, f32, global> -> !tile.view<1, f32, global>
// CHECK-NEXT:     tile.store %35, %87[%2] : tensor<16xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     %88 = tile.stride %totals, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %89 = arith.muli %4, %88 : index
// CHECK-NEXT:     %90 = tile.stride %totals, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %91 = arith.muli %3, %90 : index
// CHECK-NEXT:     %92 = arith.addi %89, %91 : index
// CHECK-NEXT:     %93 = tile.stride %totals, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %94 = tile.view %totals offset %92 sizes[%12] strides[%93] : !tile.view<3, f32, global> -> !tile.view<1, f32, global>
// CHECK-NEXT:     tile.store %36, %94[%2] : tensor<16xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%sums: !tile.view<4, f32, global>, %tops: !tile.view<3, f32, global>, %totals: !tile.view<3, f32, global>, %k: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[4, B, 4, 16], [4, B, 4], [4, B, 4], [B, T, 16], [B, 4, 16]] grid [4, B, 1] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = tile.program_id 1
// CHECK-NEXT:     %2 = tile.program_id 2
// CHECK-NEXT:     %3 = arith.constant 16 : index
// CHECK-NEXT:     %4 = arith.muli %2, %3 : index
// CHECK-NEXT:     %5 = arith.constant 0xff800000 : f32
// CHECK-NEXT:     %6 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %7 = tile.stride %sums, 1 : !tile.view<4, f32, global>
// CHECK-NEXT:     %8 = arith.muli %1, %7 : index
// CHECK-NEXT:     %9 = tile.stride %sums, 2 : !tile.view<4, f32, global>
// CHECK-NEXT:     %10 = arith.muli %0, %9 : index
// CHECK-NEXT:     %11 = arith.addi %8, %10 : index
// CHECK-NEXT:     %12 = arith.constant 4 : index
// CHECK-NEXT:     %13 = tile.stride %sums, 0 : !tile.view<4, f32, global>
// CHECK-NEXT:     %14 = tile.stride %sums, 3 : !tile.view<4, f32, global>
// CHECK-NEXT:     %15 = tile.view %sums offset %11 sizes[%12, %3] strides[%13, %14] : !tile.view<4, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     %16 = arith.constant 0 : index
// CHECK-NEXT:     %17 = tile.load %15[%16, %4] : !tile.view<2, f32, global> -> tensor<4x16xf32>
// CHECK-NEXT:     %18 = tile.stride %tops, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %19 = arith.muli %1, %18 : index
// CHECK-NEXT:     %20 = tile.stride %tops, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %21 = arith.muli %0, %20 : index
// CHECK-NEXT:     %22 = arith.addi %19, %21 : index
// CHECK-NEXT:     %23 = tile.stride %tops, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %24 = tile.view %tops offset %22 sizes[%12] strides[%23] : !tile.view<3, f32, global> -> !tile.view<1, f32, global>
// CHECK-NEXT:     %25 = tile.load %24[%16] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     %26 = tile.stride %totals, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %27 = arith.muli %1, %26 : index
// CHECK-NEXT:     %28 = tile.stride %totals, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %29 = arith.muli %0, %28 : index
// CHECK-NEXT:     %30 = arith.addi %27, %29 : index
// CHECK-NEXT:     %31 = tile.stride %totals, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %32 = tile.view %totals offset %30 sizes[%12] strides[%31] : !tile.view<3, f32, global> -> !tile.view<1, f32, global>
// CHECK-NEXT:     %33 = tile.load %32[%16] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     %34 = tile.expand %25, 0 : tensor<4xf32> -> tensor<1x4xf32>
// CHECK-NEXT:     %35 = tile.reduce<top> %34, 1 : tensor<1x4xf32> -> tensor<1xf32>
// CHECK-NEXT:     %36 = tile.full %5 : tensor<1xf32>
// CHECK-NEXT:     %37 = tile.ew<eq> %35, %36 : tensor<1xf32>, tensor<1xf32> -> tensor<1xi1>
// CHECK-NEXT:     %38 = tile.full %6 : tensor<1xf32>
// CHECK-NEXT:     %39 = tile.ew<select> %37, %38, %35 : tensor<1xi1>, tensor<1xf32>, tensor<1xf32> -> tensor<1xf32>
// CHECK-NEXT:     %40 = tile.broadcast %39 : tensor<1xf32> -> tensor<4xf32>
// CHECK-NEXT:     %41 = tile.ew<sub> %25, %40 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     %42 = tile.ew<exp> %41 : tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     %43 = tile.ew<mul> %42, %33 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     %44 = tile.expand %43, 0 : tensor<4xf32> -> tensor<1x4xf32>
// CHECK-NEXT:     %45 = tile.reduce<sum> %44, 1 : tensor<1x4xf32> -> tensor<1xf32>
// CHECK-NEXT:     %46 = tile.expand %42, 1 : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:     %47 = tile.broadcast %46 : tensor<4x1xf32> -> tensor<4x16xf32>
// CHECK-NEXT:     %48 = tile.ew<mul> %17, %47 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
// CHECK-NEXT:     %49 = tile.reduce<sum> %48, 0 : tensor<4x16xf32> -> tensor<16xf32>
// CHECK-NEXT:     %50 = tile.broadcast %45 : tensor<1xf32> -> tensor<16xf32>
// CHECK-NEXT:     %51 = tile.ew<div> %49, %50 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:     %52 = tile.dim %k, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %53 = arith.index_cast %52 : index to i64
// CHECK-NEXT:     %54 = arith.constant 0 : i64
// CHECK-NEXT:     %55 = tile.full %53 : tensor<1xi64>
// CHECK-NEXT:     %56 = tile.full %54 : tensor<1xi64>
// CHECK-NEXT:     %57 = tile.ew<eq> %55, %56 : tensor<1xi64>, tensor<1xi64> -> tensor<1xi1>
// CHECK-NEXT:     %58 = tile.broadcast %57 : tensor<1xi1> -> tensor<16xi1>
// CHECK-NEXT:     %59 = tile.full %6 : tensor<16xf32>
// CHECK-NEXT:     %60 = tile.ew<select> %58, %59, %51 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:     %61 = tile.stride %y, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %62 = arith.muli %1, %61 : index
// CHECK-NEXT:     %63 = tile.stride %y, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %64 = arith.muli %0, %63 : index
// CHECK-NEXT:     %65 = arith.addi %62, %64 : index
// CHECK-NEXT:     %66 = tile.stride %y, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %67 = tile.view %y offset %65 sizes[%3] strides[%66] : !tile.view<3, f32, global> -> !tile.view<1, f32, global>
// CHECK-NEXT:     tile.store %60, %67[%4] : tensor<16xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%q: !graph.tensor<[B, 4, 16], f32>, %k: !graph.tensor<[B, T, 16], f32>, %v: !graph.tensor<[B, T, 16], f32>) -> (!graph.tensor<[B, 4, 16], f32>) {
// CHECK-NEXT:     %y, %y_1, %y_2 = schedule.launch @f_0_parts grid <[1, B, 4]> config <block = [16, 64], split = 4>(%q, %k, %v) : (!graph.tensor<[B, 4, 16], f32>, !graph.tensor<[B, T, 16], f32>, !graph.tensor<[B, T, 16], f32>) -> (!graph.tensor<[4, B, 4, 16], f32>, !graph.tensor<[4, B, 4], f32>, !graph.tensor<[4, B, 4], f32>)
// CHECK-NEXT:     %y_3 = schedule.launch @f_0 grid <[4, B, 1]> config <>(%y, %y_1, %y_2, %k) : (!graph.tensor<[4, B, 4, 16], f32>, !graph.tensor<[4, B, 4], f32>, !graph.tensor<[4, B, 4], f32>, !graph.tensor<[B, T, 16], f32>) -> !graph.tensor<[B, 4, 16], f32>
// CHECK-NEXT:     graph.return %y_3 : !graph.tensor<[B, 4, 16], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
