builtin.module {
  tile.func @saxpy(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>, %a: f32, %result: !tile.view<1, f32, global>) outputs 1 shapes [[x_0], [y_0], [], [x_0]] grid ["(x_0 + 15)//16"] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = tile.load %x[%2] : !tile.view<1, f32, global> -> tensor<16xf32>
    %4 = tile.full %a : tensor<16xf32>
    %5 = tile.ew<mul> %4, %3 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
    %6 = tile.load %y[%2] : !tile.view<1, f32, global> -> tensor<16xf32>
    %7 = tile.ew<add> %5, %6 : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
    tile.store %7, %result[%2] : tensor<16xf32>, !tile.view<1, f32, global>
    tile.return
  }
}
