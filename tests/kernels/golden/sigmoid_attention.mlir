builtin.module {
  tile.func @sigmoid_attention(%q: !tile.view<3, f32, global>, %k: !tile.view<3, f32, global>, %v: !tile.view<3, f32, global>, %bias: f32, %result: !tile.view<3, f32, global>) outputs 1 shapes [[q_0, q_1, 16], [k_0, k_1, 16], [v_0, v_1, 16], [], [q_0, q_1, 16]] grid ["(q_1 + 15)//16", q_0] {
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
    %15 = tile.dim %k, 0 : !tile.view<3, f32, global>
    %16 = tile.dim %k, 1 : !tile.view<3, f32, global>
    %17 = arith.floordivsi %4, %15 : index
    %18 = arith.muli %17, %15 : index
    %19 = arith.subi %4, %18 : index
    %20 = arith.cmpi eq, %19, %11 : index
    tile.assert %20, "the leading sizes of q are multiples of those of k" : i1
    %21 = arith.floordivsi %3, %17 : index
    %22 = tile.stride %k, 0 : !tile.view<3, f32, global>
    %23 = arith.muli %21, %22 : index
    %24 = tile.stride %k, 1 : !tile.view<3, f32, global>
    %25 = tile.stride %k, 2 : !tile.view<3, f32, global>
    %26 = tile.view %k offset %23 sizes[%16, %1] strides[%24, %25] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %27 = arith.constant 2.500000e-01 : f32
    %28 = tile.dim %v, 0 : !tile.view<3, f32, global>
    %29 = arith.floordivsi %4, %28 : index
    %30 = arith.muli %29, %28 : index
    %31 = arith.subi %4, %30 : index
    %32 = arith.cmpi eq, %31, %11 : index
    tile.assert %32, "the leading sizes of q are multiples of those of v" : i1
    %33 = arith.floordivsi %3, %29 : index
    %34 = tile.stride %v, 0 : !tile.view<3, f32, global>
    %35 = arith.muli %33, %34 : index
    %36 = tile.dim %v, 1 : !tile.view<3, f32, global>
    %37 = tile.stride %v, 1 : !tile.view<3, f32, global>
    %38 = tile.stride %v, 2 : !tile.view<3, f32, global>
    %39 = tile.view %v offset %35 sizes[%36, %1] strides[%37, %38] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %40 = scf.for %41 = %11 to %16 step %1 iter_args(%42 = %14) -> (tensor<16x16xf32>) {
      %43 = tile.load %26[%41, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %44 = tile.trans %43, [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
      %45 = tile.dot %12, %44, %14 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %46 = tile.full %27 : tensor<16x16xf32>
      %47 = tile.ew<mul> %45, %46 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %48 = tile.full %bias : tensor<16x16xf32>
      %49 = tile.ew<add> %47, %48 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %50 = tile.ew<sigmoid> %49 : tensor<16x16xf32> -> tensor<16x16xf32>
      %51 = tile.load %39[%41, %11] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %52 = tile.dot %50, %51, %42 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      scf.yield %52 : tensor<16x16xf32>
    }
    %53 = tile.stride %result, 0 : !tile.view<3, f32, global>
    %54 = arith.muli %3, %53 : index
    %55 = tile.stride %result, 1 : !tile.view<3, f32, global>
    %56 = tile.stride %result, 2 : !tile.view<3, f32, global>
    %57 = tile.view %result offset %54 sizes[%7, %1] strides[%55, %56] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    tile.store %40, %57[%2, %11] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
