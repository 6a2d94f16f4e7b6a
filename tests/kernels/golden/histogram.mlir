builtin.module {
  tile.func @histogram(%x: !tile.view<1, i32, global>, %counts: !tile.view<1, i32, global>) outputs 0 shapes [[x_0], [counts_0]] grid ["(x_0 + 15)//16"] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = tile.load %x[%2] pad -1.0 : !tile.view<1, i32, global> -> tensor<16xi32>
    %4 = tile.expand %3, 1 : tensor<16xi32> -> tensor<16x1xi32>
    %5 = arith.constant 0 : index
    %6 = tile.iota %5, 1 : tensor<1x4xi32>
    %7 = tile.broadcast %4 : tensor<16x1xi32> -> tensor<16x4xi32>
    %8 = tile.broadcast %6 : tensor<1x4xi32> -> tensor<16x4xi32>
    %9 = tile.ew<eq> %7, %8 : tensor<16x4xi32>, tensor<16x4xi32> -> tensor<16x4xi1>
    %10 = arith.constant 1 : i32
    %11 = tile.full %10 : tensor<16x4xi32>
    %12 = arith.constant 0 : i32
    %13 = tile.full %12 : tensor<16x4xi32>
    %14 = tile.ew<select> %9, %11, %13 : tensor<16x4xi1>, tensor<16x4xi32>, tensor<16x4xi32> -> tensor<16x4xi32>
    %15 = tile.reduce<sum> %14, 0 : tensor<16x4xi32> -> tensor<4xi32>
    tile.atomic<sum> %15, %counts[%5] : tensor<4xi32>, !tile.view<1, i32, global>
    tile.return
  }
}
