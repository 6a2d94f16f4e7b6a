// RUN: tessera opt %s -p fold-leading-axes | filecheck %s
// A tile [2, 4, 8] is one of 8 rows; what goes along other axes takes elements at computed places.
tile.func @f(%x: !tile.view<3, f32, global>, %i: index) outputs 0 shapes [[2, 4, 8], []] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%i, %zero, %zero] : !tile.view<3, f32, global> -> tensor<2x4x8xf32>
  %sums = tile.reduce<sum> %a, 2 : tensor<2x4x8xf32> -> tensor<2x4xf32>
  %column = tile.expand %sums, 2 : tensor<2x4xf32> -> tensor<2x4x1xf32>
  %all = tile.broadcast %column : tensor<2x4x1xf32> -> tensor<2x4x8xf32>
  %b = tile.ew<add> %a, %all : tensor<2x4x8xf32>, tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  %t = tile.trans %b, [1, 0, 2] : tensor<2x4x8xf32> -> tensor<4x2x8xf32>
  tile.store %t, %x[%zero, %zero, %zero] : tensor<4x2x8xf32>, !tile.view<3, f32, global>
  tile.return
}

// CHECK: %1 = tile.iota %0, 1 : tensor<8x8xi64>
// CHECK: %3 = tile.iota %2, 0 : tensor<8xi64>
// CHECK: %6 = tile.ew<rem> %3, %5 : tensor<8xi64>, tensor<8xi64> -> tensor<8xi64>
// CHECK: %9 = tile.ew<floordiv> %3, %8 : tensor<8xi64>, tensor<8xi64> -> tensor<8xi64>
// CHECK: %10 = tile.expand %9, 1 : tensor<8xi64> -> tensor<8x1xi64>
// CHECK: %11 = tile.broadcast %10 : tensor<8x1xi64> -> tensor<8x8xi64>
// CHECK: %12 = tile.expand %6, 1 : tensor<8xi64> -> tensor<8x1xi64>
// CHECK: %13 = tile.broadcast %12 : tensor<8x1xi64> -> tensor<8x8xi64>
// CHECK: %17 = tile.read %x[%16, %13, %1] : !tile.view<3, f32, global>, tensor<8x8xi64>, tensor<8x8xi64>, tensor<8x8xi64> -> tensor<8x8xf32>
// CHECK: %18 = tile.reduce<sum> %17, 1 : tensor<8x8xf32> -> tensor<8xf32>
// CHECK: %19 = tile.expand %18, 1 : tensor<8xf32> -> tensor<8x1xf32>
// CHECK: %20 = tile.broadcast %19 : tensor<8x1xf32> -> tensor<8x8xf32>
// CHECK: %23 = tile.iota %22, 1 : tensor<8x8xi64>
// CHECK: %25 = tile.iota %24, 0 : tensor<8xi64>
// CHECK: %28 = tile.ew<rem> %25, %27 : tensor<8xi64>, tensor<8xi64> -> tensor<8xi64>
// CHECK: %31 = tile.ew<floordiv> %25, %30 : tensor<8xi64>, tensor<8xi64> -> tensor<8xi64>
// CHECK: %32 = tile.expand %31, 1 : tensor<8xi64> -> tensor<8x1xi64>
// CHECK: %33 = tile.broadcast %32 : tensor<8x1xi64> -> tensor<8x8xi64>
// CHECK: %34 = tile.expand %28, 1 : tensor<8xi64> -> tensor<8x1xi64>
// CHECK: %35 = tile.broadcast %34 : tensor<8x1xi64> -> tensor<8x8xi64>
// CHECK: %40 = tile.take %21[%39, %23] : tensor<8x8xf32>, tensor<8x8xi64>, tensor<8x8xi64> -> tensor<8x8xf32>
// CHECK: tile.write %40, %x[%33, %35, %23] : tensor<8x8xf32>, !tile.view<3, f32, global>, tensor<8x8xi64>, tensor<8x8xi64>, tensor<8x8xi64>
