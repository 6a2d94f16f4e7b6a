// RUN: tessera opt %s -p loop-leading-axes | filecheck %s
// One loop for the store and what leads to it; a row outside of the array has no elements.
tile.func @f(%x: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[A, 8, 16], [A, 8, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero, %zero] : !tile.view<3, f32, global> -> tensor<4x8x16xf32>
  %sums = tile.reduce<sum> %a, 2 : tensor<4x8x16xf32> -> tensor<4x8xf32>
  %column = tile.expand %sums, 2 : tensor<4x8xf32> -> tensor<4x8x1xf32>
  %all = tile.broadcast %column : tensor<4x8x1xf32> -> tensor<4x8x16xf32>
  %b = tile.ew<sub> %a, %all : tensor<4x8x16xf32>, tensor<4x8x16xf32> -> tensor<4x8x16xf32>
  tile.store %b, %y[%zero, %zero, %zero] : tensor<4x8x16xf32>, !tile.view<3, f32, global>
  tile.return
}

// CHECK{LITERAL}: tile.func @f(%x: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[A, 8, 16], [A, 8, 16]] grid [1] {
// CHECK: scf.for %3 = %2 to %1 step %0 {
// CHECK: %4 = tile.dim %x, 0 : !tile.view<3, f32, global>
// CHECK: %7 = tile.stride %x, 1 : !tile.view<3, f32, global>
// CHECK: %8 = tile.stride %x, 2 : !tile.view<3, f32, global>
// CHECK: %9 = tile.stride %x, 0 : !tile.view<3, f32, global>
// CHECK: %11 = arith.cmpi ult, %3, %4 : index
// CHECK: %13 = arith.select %11, %5, %12 : index
// CHECK: %14 = tile.view %x offset %10 sizes[%13, %6] strides[%7, %8] {tile.part} : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK: %15 = tile.load %14[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
// CHECK: %16 = tile.reduce<sum> %15, 1 : tensor<8x16xf32> -> tensor<8xf32>
// CHECK: %17 = tile.expand %16, 1 : tensor<8xf32> -> tensor<8x1xf32>
// CHECK: %18 = tile.broadcast %17 : tensor<8x1xf32> -> tensor<8x16xf32>
// CHECK: %19 = tile.ew<sub> %15, %18 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
// CHECK: %20 = tile.dim %y, 0 : !tile.view<3, f32, global>
// CHECK: %23 = tile.stride %y, 1 : !tile.view<3, f32, global>
// CHECK: %24 = tile.stride %y, 2 : !tile.view<3, f32, global>
// CHECK: %25 = tile.stride %y, 0 : !tile.view<3, f32, global>
// CHECK: %27 = arith.cmpi ult, %3, %20 : index
// CHECK: %29 = arith.select %27, %21, %28 : index
// CHECK: %30 = tile.view %y offset %26 sizes[%29, %22] strides[%23, %24] {tile.part} : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK: tile.store %19, %30[%zero, %zero] : tensor<8x16xf32>, !tile.view<2, f32, global>
