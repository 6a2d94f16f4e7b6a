builtin.module {
  tile.func @layernorm(%x: !tile.view<2, f32, global>, %weight: !tile.view<1, f32, global>, %bias: !tile.view<1, f32, global>, %result: !tile.view<2, f32, global>) outputs 1 shapes [[x_0, 16], [weight_0], [bias_0], [x_0, 16]] grid ["(x_0 + 15)//16"] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = arith.constant 0 : index
    %4 = tile.load %weight[%3] : !tile.view<1, f32, global> -> tensor<16xf32>
    %5 = tile.load %bias[%3] : !tile.view<1, f32, global> -> tensor<16xf32>
    %6 = tile.load %x[%2, %3] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %7 = tile.reduce<sum> %6, 1 : tensor<16x16xf32> -> tensor<16xf32>
    %8 = tile.expand %7, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %9 = arith.constant 1.600000e+01 : f32
    %10 = tile.full %9 : tensor<16x1xf32>
    %11 = tile.ew<div> %8, %10 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
    %12 = tile.broadcast %11 : tensor<16x1xf32> -> tensor<16x16xf32>
    %13 = tile.ew<sub> %6, %12 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %14 = tile.ew<mul> %13, %13 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %15 = tile.reduce<sum> %14, 1 : tensor<16x16xf32> -> tensor<16xf32>
    %16 = tile.expand %15, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %17 = tile.ew<div> %16, %10 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
    %18 = arith.constant 1.000000e-05 : f32
    %19 = tile.full %18 : tensor<16x1xf32>
    %20 = tile.ew<add> %17, %19 : tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x1xf32>
    %21 = tile.ew<rsqrt> %20 : tensor<16x1xf32> -> tensor<16x1xf32>
    %22 = tile.broadcast %21 : tensor<16x1xf32> -> tensor<16x16xf32>
    %23 = tile.ew<mul> %13, %22 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %24 = tile.expand %4, 0 : tensor<16xf32> -> tensor<1x16xf32>
    %25 = tile.broadcast %24 : tensor<1x16xf32> -> tensor<16x16xf32>
    %26 = tile.ew<mul> %23, %25 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %27 = tile.expand %5, 0 : tensor<16xf32> -> tensor<1x16xf32>
    %28 = tile.broadcast %27 : tensor<1x16xf32> -> tensor<16x16xf32>
    %29 = tile.ew<add> %26, %28 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    tile.store %29, %result[%2, %3] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
