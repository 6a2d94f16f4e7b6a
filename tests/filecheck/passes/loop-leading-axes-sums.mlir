// RUN: tessera opt %s -p loop-leading-axes | filecheck %s
// A reduction along the first axis: the first part, and a loop that combines the others with it.
tile.func @f(%x: !tile.view<3, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 8, 16], [8, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %a = tile.load %x[%zero, %zero, %zero] : !tile.view<3, f32, global> -> tensor<4x8x16xf32>
  %t = tile.trans %a, [0, 2, 1] : tensor<4x8x16xf32> -> tensor<4x16x8xf32>
  %start = tile.full %nothing : tensor<4x8x8xf32>
  %products = tile.dot %a, %t, %start : tensor<4x8x16xf32>, tensor<4x16x8xf32>, tensor<4x8x8xf32> -> tensor<4x8x8xf32>
  %total = tile.reduce<sum> %products, 0 : tensor<4x8x8xf32> -> tensor<8x8xf32>
  tile.store %total, %y[%zero, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK{LITERAL}: tile.func @f(%x: !tile.view<3, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 8, 16], [8, 8]] grid [1] {
// CHECK: %4 = tile.stride %x, 1 : !tile.view<3, f32, global>
// CHECK: %5 = tile.stride %x, 2 : !tile.view<3, f32, global>
// CHECK: %6 = tile.stride %x, 0 : !tile.view<3, f32, global>
// CHECK: %8 = tile.view %x offset %7 sizes[%2, %3] strides[%4, %5] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK: %9 = tile.load %8[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
// CHECK: %12 = tile.dot %9, %10, %11 : tensor<8x16xf32>, tensor<16x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK: %total = scf.for %13 = %1 to %0 step %1 iter_args(%14 = %12) -> (tensor<8x8xf32>) {
// CHECK: %18 = tile.stride %x, 1 : !tile.view<3, f32, global>
// CHECK: %19 = tile.stride %x, 2 : !tile.view<3, f32, global>
// CHECK: %20 = tile.stride %x, 0 : !tile.view<3, f32, global>
// CHECK: %25 = tile.view %x offset %21 sizes[%24, %17] strides[%18, %19] {tile.part} : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK: %26 = tile.load %25[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
// CHECK: %29 = tile.dot %26, %27, %28 : tensor<8x16xf32>, tensor<16x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK: %30 = tile.ew<add> %14, %29 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK: scf.yield %30 : tensor<8x8xf32>
// CHECK: tile.store %total, %y[%zero, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
// CHECK-NOT: tensor<{{[0-9]+}}x{{[0-9]+}}x
