builtin.module {
  tile.func @softcap_attention(%q: !tile.view<3, f32, global>, %k: !tile.view<3, f32, global>, %v: !tile.view<3, f32, global>, %result: !tile.view<3, f32, global>) outputs 1 shapes [[q_0, q_1, 16], [k_0, k_1, 16], [v_0, v_1, 16], [q_0, q_1, 16]] grid ["(q_1 + 15)//16", q_0] {
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
    %31 = arith.constant 5.000000e+00 : f32
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
    %44, %45, %46 = scf.for %47 = %11 to %19 step %1 iter_args(%48 = %14, %49 = %16, %50 = %17) -> (tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>) {
      %51 = tile.load %29[%47, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %52 = tile.trans %51, [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
      %53 = tile.dot %12, %52, %14 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %54 = tile.full %30 : tensor<16x16xf32>
      %55 = tile.ew<mul> %53, %54 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %56 = tile.full %31 : tensor<16x16xf32>
      %57 = tile.ew<div> %55, %56 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %58 = tile.ew<tanh> %57 : tensor<16x16xf32> -> tensor<16x16xf32>
      %59 = tile.ew<mul> %58, %56 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %60 = tile.iota %2, 0 : tensor<16x1xi64>
      %61 = tile.iota %47, 1 : tensor<1x16xi64>
      %62 = tile.broadcast %60 : tensor<16x1xi64> -> tensor<16x16xi64>
      %63 = tile.broadcast %61 : tensor<1x16xi64> -> tensor<16x16xi64>
      %64 = tile.ew<ge> %62, %63 : tensor<16x16xi64>, tensor<16x16xi64> -> tensor<16x16xi1>
      %65 = tile.full %15 : tensor<16x16xf32>
      %66 = tile.ew<select> %64, %59, %65 : tensor<16x16xi1>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %67 = arith.index_cast %19 : index to i64
      %68 = tile.full %67 : tensor<1x16xi64>
      %69 = tile.ew<lt> %61, %68 : tensor<1x16xi64>, tensor<1x16xi64> -> tensor<1x16xi1>
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
      %80 = tile.load %43[%47, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %81 = tile.ew<max> %49, %72 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %82 = tile.ew<eq> %81, %16 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
      %83 = tile.ew<select> %82, %17, %81 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %84 = tile.ew<sub> %49, %83 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %85 = tile.ew<exp> %84 : tensor<16xf32> -> tensor<16xf32>
      %86 = tile.ew<sub> %72, %83 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %87 = tile.ew<exp> %86 : tensor<16xf32> -> tensor<16xf32>
      %88 = tile.expand %87, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %89 = tile.broadcast %88 : tensor<16x1xf32> -> tensor<16x16xf32>
      %90 = tile.ew<mul> %78, %89 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %91 = tile.expand %85, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %92 = tile.broadcast %91 : tensor<16x1xf32> -> tensor<16x16xf32>
      %93 = tile.ew<mul> %48, %92 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %94 = tile.dot %90, %80, %93 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %95 = tile.ew<mul> %50, %85 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %96 = tile.ew<mul> %79, %87 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %97 = tile.ew<add> %95, %96 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      scf.yield %94, %81, %97 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>
    }
    %98 = tile.expand %46, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %99 = tile.full %13 : tensor<16x1xf32>
    %100 = tile.ew<eq> %98, %99 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xi1>
    %101 = arith.constant 1.000000e+00 : f32
    %102 = tile.full %101 : tensor<16x1xf32>
    %103 = tile.ew<select> %100, %102, %98 : tensor<16x1xi1>, tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
    %104 = tile.broadcast %103 : tensor<16x1xf32> -> tensor<16x16xf32>
    %105 = tile.ew<div> %44, %104 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
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
