builtin.module {
  tile.func @transpose(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 0 shapes [[x_0, x_1], [y_0, y_1]] grid [1, 1] {
    %0 = arith.constant 16 : index
    %1 = tile.program_id 0
    %2 = arith.muli %1, %0 : index
    %3 = tile.program_id 1
    %4 = arith.muli %3, %0 : index
    %5 = tile.load %x[%2, %4] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %6 = tile.trans %5, [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
    tile.store %6, %y[%4, %2] : tensor<16x16xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
