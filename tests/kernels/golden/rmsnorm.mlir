builtin.module {
  tile.func @rmsnorm(%x: !tile.view<2, f32, global>, %weight: !tile.view<1, f32, global>, %eps: f32, %result: !tile.view<2, f32, global>) outputs 1 shapes [[x_0, 16], [weight_0], [], [x_0, 16]] grid ["(x_0 + 15)//16"] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = arith.constant 0 : index
    %4 = tile.load %x[%2, %3] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %5 = tile.ew<mul> %4, %4 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %6 = tile.reduce<sum> %5, 1 : tensor<16x16xf32> -> tensor<16xf32>
    %7 = arith.constant 1.600000e+01 : f32
    %8 = tile.full %7 : tensor<16xf32>
    %9 = tile.ew<div> %6, %8 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
    %10 = tile.full %eps : tensor<16xf32>
    %11 = tile.ew<add> %9, %10 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
    %12 = tile.ew<rsqrt> %11 : tensor<16xf32> -> tensor<16xf32>
    %13 = tile.expand %12, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %14 = tile.broadcast %13 : tensor<16x1xf32> -> tensor<16x16xf32>
    %15 = tile.ew<mul> %4, %14 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %16 = tile.load %weight[%3] : !tile.view<1, f32, global> -> tensor<16xf32>
    %17 = tile.expand %16, 0 : tensor<16xf32> -> tensor<1x16xf32>
    %18 = tile.broadcast %17 : tensor<1x16xf32> -> tensor<16x16xf32>
    %19 = tile.ew<mul> %15, %18 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    tile.store %19, %result[%2, %3] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
