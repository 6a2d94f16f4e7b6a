builtin.module {
  tile.func @logsumexp(%x: !tile.view<2, f32, global>, %result: !tile.view<1, f32, global>) outputs 1 shapes [[x_0, x_1], [x_0]] grid ["(x_0 + 15)//16"] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = arith.constant 0xff800000 : f32
    %4 = tile.full %3 : tensor<16xf32>
    %5 = arith.constant 0.000000e+00 : f32
    %6 = tile.full %5 : tensor<16xf32>
    %7 = tile.dim %x, 1 : !tile.view<2, f32, global>
    %8 = arith.constant 0 : index
    %9, %10 = scf.for %11 = %8 to %7 step %1 iter_args(%12 = %6, %13 = %4) -> (tensor<16xf32>, tensor<16xf32>) {
      %14 = tile.load %x[%2, %11] pad -inf : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %15 = tile.reduce<max> %14, 1 : tensor<16x16xf32> -> tensor<16xf32>
      %16 = tile.ew<max> %13, %15 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %17 = tile.ew<eq> %16, %4 : tensor<16xf32>, tensor<16xf32> -> tensor<16xi1>
      %18 = tile.ew<select> %17, %6, %16 : tensor<16xi1>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %19 = tile.ew<sub> %13, %18 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %20 = tile.ew<exp> %19 : tensor<16xf32> -> tensor<16xf32>
      %21 = tile.ew<mul> %12, %20 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      %22 = tile.expand %18, 1 : tensor<16xf32> -> tensor<16x1xf32>
      %23 = tile.broadcast %22 : tensor<16x1xf32> -> tensor<16x16xf32>
      %24 = tile.ew<sub> %14, %23 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %25 = tile.ew<exp> %24 : tensor<16x16xf32> -> tensor<16x16xf32>
      %26 = tile.reduce<sum> %25, 1 : tensor<16x16xf32> -> tensor<16xf32>
      %27 = tile.ew<add> %21, %26 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
      scf.yield %27, %16 : tensor<16xf32>, tensor<16xf32>
    }
    %28 = tile.ew<log> %9 : tensor<16xf32> -> tensor<16xf32>
    %29 = tile.ew<add> %10, %28 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
    tile.store %29, %result[%2] : tensor<16xf32>, !tile.view<1, f32, global>
    tile.return
  }
}
