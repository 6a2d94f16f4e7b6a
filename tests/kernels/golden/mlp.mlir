builtin.module {
  tile.func @mlp(%x: !tile.view<2, f32, global>, %up: !tile.view<2, f32, global>, %down: !tile.view<2, f32, global>, %result: !tile.view<2, f32, global>) outputs 1 shapes [[x_0, 16], [up_0, up_1], [down_0, down_1], [x_0, 16]] grid ["(x_0 + 15)//16"] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = arith.constant 0 : index
    %4 = tile.load %x[%2, %3] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %5 = arith.constant 0.000000e+00 : f32
    %6 = tile.full %5 : tensor<16x16xf32>
    %7 = tile.dim %up, 1 : !tile.view<2, f32, global>
    %8 = arith.constant 5.000000e-01 : f32
    %9 = arith.constant 1.41421354 : f32
    %10 = arith.constant 1.000000e+00 : f32
    %11 = scf.for %12 = %3 to %7 step %1 iter_args(%13 = %6) -> (tensor<16x16xf32>) {
      %14 = tile.load %up[%3, %12] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %15 = tile.dot %4, %14, %6 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %16 = tile.full %8 : tensor<16x16xf32>
      %17 = tile.ew<mul> %15, %16 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %18 = tile.full %9 : tensor<16x16xf32>
      %19 = tile.ew<div> %15, %18 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %20 = tile.ew<erf> %19 : tensor<16x16xf32> -> tensor<16x16xf32>
      %21 = tile.full %10 : tensor<16x16xf32>
      %22 = tile.ew<add> %20, %21 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %23 = tile.ew<mul> %17, %22 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %24 = tile.load %down[%12, %3] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %25 = tile.dot %23, %24, %13 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      scf.yield %25 : tensor<16x16xf32>
    }
    tile.store %11, %result[%2, %3] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
