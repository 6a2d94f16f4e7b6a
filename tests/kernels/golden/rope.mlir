builtin.module {
  tile.func @rope(%x: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>) outputs 0 shapes [[x_0, x_1, 16], [y_0, y_1, y_2]] grid ["(x_1 + 15)//16", x_0] {
    %0 = tile.program_id 0
    %1 = arith.constant 16 : index
    %2 = arith.muli %0, %1 : index
    %3 = tile.program_id 1
    %4 = tile.dim %x, 0 : !tile.view<3, f32, global>
    %5 = tile.stride %x, 0 : !tile.view<3, f32, global>
    %6 = arith.muli %3, %5 : index
    %7 = tile.dim %x, 1 : !tile.view<3, f32, global>
    %8 = tile.stride %x, 1 : !tile.view<3, f32, global>
    %9 = tile.stride %x, 2 : !tile.view<3, f32, global>
    %10 = tile.view %x offset %6 sizes[%7, %1] strides[%8, %9] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    %11 = arith.constant 0 : index
    %12 = tile.load %10[%2, %11] : !tile.view<2, f32, global> -> tensor<16x8xf32>
    %13 = arith.constant 8 : index
    %14 = tile.load %10[%2, %13] : !tile.view<2, f32, global> -> tensor<16x8xf32>
    %15 = tile.iota %2, 0 : tensor<16x1xi64>
    %16 = tile.ew<cast> %15 : tensor<16x1xi64> -> tensor<16x1xf32>
    %17 = tile.iota %11, 1 : tensor<1x8xi64>
    %18 = tile.ew<cast> %17 : tensor<1x8xi64> -> tensor<1x8xf32>
    %19 = arith.constant -1.66096401 : f32
    %20 = tile.full %19 : tensor<1x8xf32>
    %21 = tile.ew<mul> %18, %20 : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
    %22 = tile.ew<exp2> %21 : tensor<1x8xf32> -> tensor<1x8xf32>
    %23 = tile.broadcast %16 : tensor<16x1xf32> -> tensor<16x8xf32>
    %24 = tile.broadcast %22 : tensor<1x8xf32> -> tensor<16x8xf32>
    %25 = tile.ew<mul> %23, %24 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    %26 = tile.ew<cos> %25 : tensor<16x8xf32> -> tensor<16x8xf32>
    %27 = tile.ew<mul> %12, %26 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    %28 = tile.ew<sin> %25 : tensor<16x8xf32> -> tensor<16x8xf32>
    %29 = tile.ew<mul> %14, %28 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    %30 = tile.ew<sub> %27, %29 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    %31 = tile.ew<mul> %14, %26 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    %32 = tile.ew<mul> %12, %28 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    %33 = tile.ew<add> %31, %32 : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
    %34 = tile.dim %y, 0 : !tile.view<3, f32, global>
    %35 = arith.floordivsi %4, %34 : index
    %36 = arith.muli %35, %34 : index
    %37 = arith.subi %4, %36 : index
    %38 = arith.cmpi eq, %37, %11 : index
    tile.assert %38, "the leading sizes of x are multiples of those of y" : i1
    %39 = arith.floordivsi %3, %35 : index
    %40 = tile.stride %y, 0 : !tile.view<3, f32, global>
    %41 = arith.muli %39, %40 : index
    %42 = tile.dim %y, 1 : !tile.view<3, f32, global>
    %43 = tile.dim %y, 2 : !tile.view<3, f32, global>
    %44 = tile.stride %y, 1 : !tile.view<3, f32, global>
    %45 = tile.stride %y, 2 : !tile.view<3, f32, global>
    %46 = tile.view %y offset %41 sizes[%42, %43] strides[%44, %45] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
    tile.store %30, %46[%2, %11] : tensor<16x8xf32>, !tile.view<2, f32, global>
    tile.store %33, %46[%2, %13] : tensor<16x8xf32>, !tile.view<2, f32, global>
    tile.return
  }
}
