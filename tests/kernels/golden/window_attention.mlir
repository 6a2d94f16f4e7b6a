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
    %43 = arith.constant 1.000000e+00 : f32
    %44, %45, %46 = scf.for %47 = %11 to %19 step %1 iter_args(%48 = %14, %49 = %16, %50 = %17) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %51 = tile.load %29[%47, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %52 = tile.trans %51, [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
      %53 = tile.dot %12, %52, %14 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %54 = tile.full %30 : tensor<16x16xf32>
      %55 = tile.ew<mul> %53, %54 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %56 = tile.iota %2, 0 : tensor<16x1xi64>
      %57 = tile.iota %47, 1 : tensor<1x16xi64>
      %58 = tile.broadcast %56 : tensor<16x1xi64> -> tensor<16x16xi64>
      %59 = tile.broadcast %57 : tensor<1x16xi64> -> tensor<16x16xi64>
      %60 = tile.ew<ge> %58, %59 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi1>
      %61 = tile.ew<sub> %58, %59 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi64>
      %62 = arith.index_cast %window : index to i64
      %63 = tile.full %62 : tensor<16x16xi64>
      %64 = tile.ew<lt> %61, %63 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi1>
      %65 = tile.ew<and> %60, %64 : tensor<16x16xi1>, tensor<16x16xi1> -> tensor<16x16xi1>
      %66 = tile.full %15 : tensor<16x16xf32>
      %67 = tile.ew<select> %65, %55, %66 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %68 = arith.index_cast %19 : index to i64
      %69 = tile.full %68 : tensor<1x16xi64>
      %70 = tile.ew<lt> %57, %69 : tensor<1x16xi64>, tensor<1x16xi64> -> tensor<1x16xi1>
      %71 = tile.broadcast %70 : tensor<1x16xi1> -> tensor<16x16xi1>
      %72 = tile.ew<select> %71, %67, %66 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %73 = tile.reduce<top> %72, 1 : tensor<16x16xf32> -> tensor<16xf32>
      %74 = tile.load %42[%47, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %75 = tile.ew<max> %49, %73 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %76 = tile.ew<eq> %75, %16 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
      %77 = tile.ew<select> %76, %17, %75 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %78 = tile.ew<le> %73, %49 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
      %79 = tile.ew<sub> %49, %77 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %80 = tile.ew<exp> %79 : tensor<16xf32> -> tensor<16xf32>
      %81 = tile.full %43 : tensor<16xf32>
      %82 = tile.ew<select> %78, %81, %80 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %83 = tile.expand %77, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %84 = tile.broadcast %83 : tensor<16x1xf32> -> tensor<16x16xf32>
      %85 = tile.ew<sub> %72, %84 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %86 = tile.ew<exp> %85 : tensor<16x16xf32> -> tensor<16x16xf32>
      %87 = tile.expand %82, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %88 = tile.broadcast %87 : tensor<16x1xf32> -> tensor<16x16xf32>
      %89 = tile.ew<mul> %48, %88 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %90 = tile.dot %86, %74, %89 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %91 = tile.ew<mul> %50, %82 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %92 = tile.reduce<sum> %86, 1 : tensor<16x16xf32> -> tensor<16xf32>
      %93 = tile.ew<add> %91, %92 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      scf.yield %90, %75, %93 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %94 = tile.expand %46, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %95 = tile.full %13 : tensor<16x1xf32>
    %96 = tile.ew<eq> %94, %95 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xi1>
    %97 = tile.full %43 : tensor<16x1xf32>
    %98 = tile.ew<select> %96, %97, %94 : tensor<16x1xi1>, tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
    %99 = tile.broadcast %98 : tensor<16x1xf32> -> tensor<16x16xf32>
    %100 = tile.ew<div> %44, %99 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %101 = tile.broadcast %96 : tensor<16x1xi1> -> tensor<16x16xi1>
    %102 = tile.ew<select> %101, %14, %100 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %103 = tile.stride %result, 0 : !tile.view<3, f32, global>
    %104 = arith.muli %3, %103 : index
    %105 = tile.stride %result, 1 : !tile.view<3, f32, global>
    %106 = tile.stride %result, 2 : !tile.view<3, f32, global>
    %107 = tile.view %result offset %104 sizes[%7, %1] strides[%105, %106] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    tile.store %102, %107[%2, %11] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
