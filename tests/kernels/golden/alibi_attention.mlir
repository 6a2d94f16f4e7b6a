builtin.module {
  tile.func @alibi_attention(%q: !tile.view<3, f32, global>, %k: !tile.view<3, f32, global>, %v: !tile.view<3, f32, global>, %slopes: !tile.view<1, f32, global>, %result: !tile.view<3, f32, global>) outputs 1 shapes [[q_0, q_1, 16], [k_0, k_1, 16], [v_0, v_1, 16], [slopes_0], [q_0, q_1, 16]] grid ["(q_1 + 15)//16", q_0] {
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
    %13 = tile.load %slopes[%3] : !tile.view<1, f32, global> -> tensor<1xf32>
    %14 = arith.constant 0.000000e+00 : f32
    %15 = tile.full %14 : tensor<16x16xf32>
    %16 = arith.constant 0xff800000 : f32
    %17 = tile.full %16 : tensor<16xf32>
    %18 = tile.full %14 : tensor<16xf32>
    %19 = tile.dim %k, 0 : !tile.view<3, f32, global>
    %20 = tile.dim %k, 1 : !tile.view<3, f32, global>
    %21 = arith.floordivsi %4, %19 : index
    %22 = arith.muli %21, %19 : index
    %23 = arith.subi %4, %22 : index
    %24 = arith.cmpi eq, %23, %11 : index
    tile.assert %24, "the leading sizes of q are multiples of those of k" : i1
    %25 = arith.floordivsi %3, %21 : index
    %26 = tile.stride %k, 0 : !tile.view<3, f32, global>
    %27 = arith.muli %25, %26 : index
    %28 = tile.stride %k, 1 : !tile.view<3, f32, global>
    %29 = tile.stride %k, 2 : !tile.view<3, f32, global>
    %30 = tile.view %k offset %27 sizes[%20, %1] strides[%28, %29] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %31 = arith.constant 2.500000e-01 : f32
    %32 = tile.dim %v, 0 : !tile.view<3, f32, global>
    %33 = arith.floordivsi %4, %32 : index
    %34 = arith.muli %33, %32 : index
    %35 = arith.subi %4, %34 : index
    %36 = arith.cmpi eq, %35, %11 : index
    tile.assert %36, "the leading sizes of q are multiples of those of v" : i1
    %37 = arith.floordivsi %3, %33 : index
    %38 = tile.stride %v, 0 : !tile.view<3, f32, global>
    %39 = arith.muli %37, %38 : index
    %40 = tile.dim %v, 1 : !tile.view<3, f32, global>
    %41 = tile.stride %v, 1 : !tile.view<3, f32, global>
    %42 = tile.stride %v, 2 : !tile.view<3, f32, global>
    %43 = tile.view %v offset %39 sizes[%40, %1] strides[%41, %42] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %44 = arith.constant 1.000000e+00 : f32
    %45, %46, %47 = scf.for %48 = %11 to %20 step %1 iter_args(%49 = %15, %50 = %17, %51 = %18) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %52 = tile.iota %2, 0 : tensor<16x1xi64>
      %53 = tile.iota %48, 1 : tensor<1x16xi64>
      %54 = tile.load %30[%48, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %55 = tile.trans %54, [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
      %56 = tile.dot %12, %55, %15 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %57 = tile.full %31 : tensor<16x16xf32>
      %58 = tile.ew<mul> %56, %57 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %59 = tile.broadcast %52 : tensor<16x1xi64> -> tensor<16x16xi64>
      %60 = tile.broadcast %53 : tensor<1x16xi64> -> tensor<16x16xi64>
      %61 = tile.ew<sub> %59, %60 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi64>
      %62 = tile.ew<cast> %61 : tensor<16x16xi64> -> tensor<16x16xf32>
      %63 = tile.expand %13, 0 : tensor<1xf32> -> tensor<1x1xf32>
      %64 = tile.broadcast %63 : tensor<1x1xf32> -> tensor<16x16xf32>
      %65 = tile.ew<mul> %64, %62 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %66 = tile.ew<sub> %58, %65 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %67 = tile.ew<ge> %59, %60 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi1>
      %68 = tile.full %16 : tensor<16x16xf32>
      %69 = tile.ew<select> %67, %66, %68 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %70 = arith.index_cast %20 : index to i64
      %71 = tile.full %70 : tensor<1x16xi64>
      %72 = tile.ew<lt> %53, %71 : tensor<1x16xi64>, tensor<1x16xi64> -> tensor<1x16xi1>
      %73 = tile.broadcast %72 : tensor<1x16xi1> -> tensor<16x16xi1>
      %74 = tile.ew<select> %73, %69, %68 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %75 = tile.reduce<top> %74, 1 : tensor<16x16xf32> -> tensor<16xf32>
      %76 = tile.load %43[%48, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %77 = tile.ew<max> %50, %75 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %78 = tile.ew<eq> %77, %17 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
      %79 = tile.ew<select> %78, %18, %77 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %80 = tile.ew<le> %75, %50 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
      %81 = tile.ew<sub> %50, %79 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %82 = tile.ew<exp> %81 : tensor<16xf32> -> tensor<16xf32>
      %83 = tile.full %44 : tensor<16xf32>
      %84 = tile.ew<select> %80, %83, %82 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %85 = tile.expand %79, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %86 = tile.broadcast %85 : tensor<16x1xf32> -> tensor<16x16xf32>
      %87 = tile.ew<sub> %74, %86 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %88 = tile.ew<exp> %87 : tensor<16x16xf32> -> tensor<16x16xf32>
      %89 = tile.expand %84, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %90 = tile.broadcast %89 : tensor<16x1xf32> -> tensor<16x16xf32>
      %91 = tile.ew<mul> %49, %90 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %92 = tile.dot %88, %76, %91 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %93 = tile.ew<mul> %51, %84 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %94 = tile.reduce<sum> %88, 1 : tensor<16x16xf32> -> tensor<16xf32>
      %95 = tile.ew<add> %93, %94 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      scf.yield %92, %77, %95 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %96 = tile.expand %47, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %97 = tile.full %14 : tensor<16x1xf32>
    %98 = tile.ew<eq> %96, %97 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xi1>
    %99 = tile.full %44 : tensor<16x1xf32>
    %100 = tile.ew<select> %98, %99, %96 : tensor<16x1xi1>, tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
    %101 = tile.broadcast %100 : tensor<16x1xf32> -> tensor<16x16xf32>
    %102 = tile.ew<div> %45, %101 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %103 = tile.broadcast %98 : tensor<16x1xi1> -> tensor<16x16xi1>
    %104 = tile.ew<select> %103, %15, %102 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %105 = tile.stride %result, 0 : !tile.view<3, f32, global>
    %106 = arith.muli %3, %105 : index
    %107 = tile.stride %result, 1 : !tile.view<3, f32, global>
    %108 = tile.stride %result, 2 : !tile.view<3, f32, global>
    %109 = tile.view %result offset %106 sizes[%7, %1] strides[%107, %108] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    tile.store %104, %109[%2, %11] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
