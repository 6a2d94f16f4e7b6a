builtin.module {
  tile.func @gemm(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %bias: !tile.view<1, f32, global>, %c: !tile.view<2, f32, global>) outputs 0 shapes [[a_0, a_1], [b_0, b_1], [bias_0], [c_0, c_1]] grid [2, 2] {
    %0 = arith.constant 16 : index
    %1 = tile.program_id 0
    %2 = arith.muli %1, %0 : index
    %3 = tile.program_id 1
    %4 = arith.muli %3, %0 : index
    %5 = arith.constant 0.000000e+00 : f32
    %6 = tile.full %5 : tensor<16x16xf32>
    %7 = tile.dim %a, 1 : !tile.view<2, f32, global>
    %8 = arith.constant 0 : index
    %9 = scf.for %10 = %8 to %7 step %0 iter_args(%11 = %6) -> (tensor<16x16xf32>) {
      %12 = tile.load %a[%2, %10] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %13 = tile.load %b[%10, %4] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %14 = tile.dot %12, %13, %11 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      scf.yield %14 : tensor<16x16xf32>
    }
    %15 = tile.load %bias[%4] : !tile.view<1, f32, global> -> tensor<16xf32>
    %16 = tile.expand %15, 0 : tensor<16xf32> -> tensor<1x16xf32>
    %17 = tile.broadcast %16 : tensor<1x16xf32> -> tensor<16x16xf32>
    %18 = tile.ew<add> %9, %17 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %19 = arith.constant 5.000000e-01 : f32
    %20 = tile.full %19 : tensor<16x16xf32>
    %21 = tile.ew<mul> %18, %20 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %22 = arith.constant 1.41421354 : f32
    %23 = tile.full %22 : tensor<16x16xf32>
    %24 = tile.ew<div> %18, %23 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %25 = tile.ew<erf> %24 : tensor<16x16xf32> -> tensor<16x16xf32>
    %26 = arith.constant 1.000000e+00 : f32
    %27 = tile.full %26 : tensor<16x16xf32>
    %28 = tile.ew<add> %25, %27 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %29 = tile.ew<mul> %21, %28 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    tile.store %29, %c[%2, %4] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
