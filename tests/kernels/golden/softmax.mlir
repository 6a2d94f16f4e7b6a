builtin.module {
  tile.func @softmax(%x: !tile.view<2, f32, global>, %result: !tile.view<2, f32, global>) outputs 1 shapes [[x_0, 16], [x_0, 16]] grid ["(x_0 + 15)//16"] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = arith.constant 0 : index
    %4 = tile.load %x[%2, %3] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %5 = tile.reduce<max> %4, 1 : tensor<16x16xf32> -> tensor<16xf32>
    %6 = tile.expand %5, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %7 = tile.broadcast %6 : tensor<16x1xf32> -> tensor<16x16xf32>
    %8 = tile.ew<sub> %4, %7 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %9 = tile.ew<exp> %8 : tensor<16x16xf32> -> tensor<16x16xf32>
    %10 = tile.reduce<sum> %9, 1 : tensor<16x16xf32> -> tensor<16xf32>
    %11 = tile.expand %10, 1 : tensor<16xf32> -> tensor<16x1xf32>
    %12 = tile.broadcast %11 : tensor<16x1xf32> -> tensor<16x16xf32>
    %13 = tile.ew<div> %9, %12 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    tile.store %13, %result[%2, %3] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
