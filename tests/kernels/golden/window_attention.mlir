builtin.module {
  tile.func @window_attention(%q: !tile.view<3, f32, global>, %k: !tile.view<3, f32, global>, %v: !tile.view<3, f32, global>, %window: index, %result: !tile.view<3, f32, global>) outputs 1 shapes [[q_0, q_1, 16], [k_0, k_1, 16], [v_0, v_1, 16], [], [q_0, q_1, 16]] grid ["(q_1 + 15)//16", q_0] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = tile.program_id 1
    %4 = tile.dim %q, 0 : !tile.view<3, f32, global>
    %5 = tile.stride %q, 0 : !tile.view<3, f32, global>
    %6 = arith.muli %3, %5 : index
    %7 = tile.dim %q, 1 : !tile.view<3, f32, global>
    %8 = tile.stride %q, 1 : !tile.view<3, f32, global>
    %9 = tile.stride %q, 2 : !tile.view<3, f32, global>
    %10 = tile.view %q offset %6 sizes[%7, %1] strides[%8, %9] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %11 = arith.constant 0 : index
    %12 = tile.load %10[%2, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %13 = arith.constant 0.000000e+00 : f32
    %14 = tile.full %13 : tensor<16x16xf32>
    %15 = arith.constant 0xff800000 : f32
    %16 = tile.full %15 : tensor<16xf32>
    %17 = tile.full %13 : tensor<16xf32>
    %18 = tile.dim %k, 0 : !tile.view<3, f32, global>
    %19 = tile.dim %k, 1 : !tile.view<3, f32, global>
    %20 = arith.floordivsi %4, %18 : index
    %21 = arith.muli %20, %18 : index
    %22 = arith.subi %4, %21 : index
    %23 = arith.cmpi eq, %22, %11 : index
    tile.assert %23, "the leading sizes of q are multiples of those of k" : i1
    %24 = arith.floordivsi %3, %20 : index
    %25 = tile.stride %k, 0 : !tile.view<3, f32, global>
    %26 = arith.muli %24, %25 : index
    %27 = tile.stride %k, 1 : !tile.view<3, f32, global>
    %28 = tile.stride %k, 2 : !tile.view<3, f32, global>
    %29 = tile.view %k offset %26 sizes[%19, %1] strides[%27, %28] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %30 = arith.constant 2.500000e-01 : f32
    %31 = tile.dim %v, 0 : !tile.view<3, f32, global>
    %32 = arith.floordivsi %4, %31 : index
    %33 = arith.muli %32, %31 : index
    %34 = arith.subi %4, %33 : index
    %35 = arith.cmpi eq, %34, %11 : index
    tile.assert %35, "the leading sizes of q are multiples of those of v" : i1
    %36 = arith.floordivsi %3, %32 : index
    %37 = tile.stride %v, 0 : !tile.view<3, f32, global>
    %38 = arith.muli %36, %37 : index
    %39 = tile.dim %v, 1 : !tile.view<3, f32, global>
    %40 = tile.stride %v, 1 : !tile.view<3, f32, global>
    %41 = tile.stride %v, 2 : !tile.view<3, f32, global>
    %42 = tile.view %v offset %38 sizes[%39, %1] strides[%40, %41] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %43, %44, %45 = scf.for %46 = %11 to %19 step %1 iter_args(%47 = %14, %48 = %16, %49 = %17) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %50 = tile.load %29[%46, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %51 = tile.trans %50, [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
      %52 = tile.dot %12, %51, %14 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %53 = tile.full %30 : tensor<16x16xf32>
      %54 = tile.ew<mul> %52, %53 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %55 = tile.iota %2, 0 : tensor<16x1xi64>
      %56 = tile.iota %46, 1 : tensor<1x16xi64>
      %57 = tile.broadcast %55 : tensor<16x1xi64> -> tensor<16x16xi64>
      %58 = tile.broadcast %56 : tensor<1x16xi64> -> tensor<16x16xi64>
      %59 = tile.ew<ge> %57, %58 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi1>
      %60 = tile.ew<sub> %57, %58 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi64>
      %61 = arith.index_cast %window : index to i64
      %62 = tile.full %61 : tensor<16x16xi64>
      %63 = tile.ew<lt> %60, %62 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi1>
      %64 = tile.ew<and> %59, %63 : tensor<16x16xi1>, tensor<16x16xi1> -> tensor<16x16xi1>
      %65 = tile.full %15 : tensor<16x16xf32>
      %66 = tile.ew<select> %64, %54, %65 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %67 = arith.index_cast %19 : index to i64
      %68 = tile.full %67 : tensor<1x16xi64>
      %69 = tile.ew<lt> %56, %68 : tensor<1x16xi64>, tensor<1x16xi64> -> tensor<1x16xi1>
      %70 = tile.broadcast %69 : tensor<1x16xi1> -> tensor<16x16xi1>
      %71 = tile.ew<select> %70, %66, %65 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %72 = tile.reduce<max> %71, 1 : tensor<16x16xf32> -> tensor<16xf32>
      %73 = tile.ew<eq> %72, %16 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
      %74 = tile.ew<select> %73, %17, %72 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %75 = tile.expand %74, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %76 = tile.broadcast %75 : tensor<16x1xf32> -> tensor<16x16xf32>
      %77 = tile.ew<sub> %71, %76 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %78 = tile.ew<exp> %77 : tensor<16x16xf32> -> tensor<16x16xf32>
      %79 = tile.reduce<sum> %78, 1 : tensor<16x16xf32> -> tensor<16xf32>
      %80 = tile.load %42[%46, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %81 = tile.ew<max> %48, %72 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %82 = tile.ew<eq> %81, %16 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
      %83 = tile.ew<select> %82, %17, %81 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %84 = tile.ew<sub> %48, %83 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %85 = tile.ew<exp> %84 : tensor<16xf32> -> tensor<16xf32>
      %86 = tile.ew<sub> %72, %83 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %87 = tile.ew<exp> %86 : tensor<16xf32> -> tensor<16xf32>
      %88 = tile.expand %87, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %89 = tile.broadcast %88 : tensor<16x1xf32> -> tensor<16x16xf32>
      %90 = tile.ew<mul> %78, %89 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %91 = tile.expand %85, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %92 = tile.broadcast %91 : tensor<16x1xf32> -> tensor<16x16xf32>
      %93 = tile.ew<mul> %47, %92 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %94 = tile.dot %90, %80, %93 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %95 = tile.ew<mul> %49, %85 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %96 = tile.ew<mul> %79, %87 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %97 = tile.ew<add> %95, %96 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      scf.yield %94, %81, %97 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %98 = tile.expand %45, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %99 = tile.full %13 : tensor<16x1xf32>
    %100 = tile.ew<eq> %98, %99 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xi1>
    %101 = arith.constant 1.000000e+00 : f32
    %102 = tile.full %101 : tensor<16x1xf32>
    %103 = tile.ew<select> %100, %102, %98 : tensor<16x1xi1>, tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
    %104 = tile.broadcast %103 : tensor<16x1xf32> -> tensor<16x16xf32>
    %105 = tile.ew<div> %43, %104 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %106 = tile.broadcast %100 : tensor<16x1xi1> -> tensor<16x16xi1>
    %107 = tile.ew<select> %106, %14, %105 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %108 = tile.stride %result, 0 : !tile.view<3, f32, global>
    %109 = arith.muli %3, %108 : index
    %110 = tile.stride %result, 1 : !tile.view<3, f32, global>
    %111 = tile.stride %result, 2 : !tile.view<3, f32, global>
    %112 = tile.view %result offset %109 sizes[%7, %1] strides[%110, %111] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    tile.store %107, %112[%2, %11] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
