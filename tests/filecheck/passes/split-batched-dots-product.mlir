// RUN: tessera opt %s -p split-batched-dots | filecheck %s
// Each product by itself, with what follows it; the right operand is the same for all.
tile.func @f(%x: !tile.view<3, f16, global>, %w: !tile.view<2, f16, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[2, 16, 32], [32, 8], [2, 16, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %a = tile.load %x[%zero, %zero, %zero] : !tile.view<3, f16, global> -> tensor<2x16x32xf16>
  %b = tile.load %w[%zero, %zero] : !tile.view<2, f16, global> -> tensor<32x8xf16>
  %once = tile.expand %b, 0 : tensor<32x8xf16> -> tensor<1x32x8xf16>
  %each = tile.broadcast %once : tensor<1x32x8xf16> -> tensor<2x32x8xf16>
  %start = tile.full %nothing : tensor<2x16x8xf32>
  %products = tile.dot %a, %each, %start : tensor<2x16x32xf16>, tensor<2x32x8xf16>, tensor<2x16x8xf32> -> tensor<2x16x8xf32>
  %powers = tile.ew<exp> %products : tensor<2x16x8xf32> -> tensor<2x16x8xf32>
  tile.store %powers, %y[%zero, %zero, %zero] : tensor<2x16x8xf32>, !tile.view<3, f32, global>
  tile.return
}

// CHECK{LITERAL}: tile.func @f(%x: !tile.view<3, f16, global>, %w: !tile.view<2, f16, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[2, 16, 32], [32, 8], [2, 16, 8]] grid [1] {
// CHECK: %3 = tile.stride %x, 1 : !tile.view<3, f16, global>
// CHECK: %4 = tile.stride %x, 2 : !tile.view<3, f16, global>
// CHECK: %5 = tile.stride %x, 0 : !tile.view<3, f16, global>
// CHECK: %7 = tile.view %x offset %6 sizes[%1, %2] strides[%3, %4] : !tile.view<3, f16, global> -> !tile.view<2, f16, global>
// CHECK: %8 = tile.load %7[%zero, %zero] : !tile.view<2, f16, global> -> tensor<16x32xf16>
// CHECK: %11 = tile.stride %x, 1 : !tile.view<3, f16, global>
// CHECK: %12 = tile.stride %x, 2 : !tile.view<3, f16, global>
// CHECK: %13 = tile.stride %x, 0 : !tile.view<3, f16, global>
// CHECK: %15 = tile.view %x offset %14 sizes[%9, %10] strides[%11, %12] : !tile.view<3, f16, global> -> !tile.view<2, f16, global>
// CHECK: %16 = tile.load %15[%zero, %zero] : !tile.view<2, f16, global> -> tensor<16x32xf16>
// CHECK: %b = tile.load %w[%zero, %zero] : !tile.view<2, f16, global> -> tensor<32x8xf16>
// CHECK: %19 = tile.dot %8, %b, %17 : tensor<16x32xf16>, tensor<32x8xf16>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK: %20 = tile.dot %16, %b, %18 : tensor<16x32xf16>, tensor<32x8xf16>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK: %21 = tile.ew<exp> %19 : tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK: %22 = tile.ew<exp> %20 : tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK: %25 = tile.stride %y, 1 : !tile.view<3, f32, global>
// CHECK: %26 = tile.stride %y, 2 : !tile.view<3, f32, global>
// CHECK: %27 = tile.stride %y, 0 : !tile.view<3, f32, global>
// CHECK: %29 = tile.view %y offset %28 sizes[%23, %24] strides[%25, %26] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK: tile.store %21, %29[%zero, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK: %32 = tile.stride %y, 1 : !tile.view<3, f32, global>
// CHECK: %33 = tile.stride %y, 2 : !tile.view<3, f32, global>
// CHECK: %34 = tile.stride %y, 0 : !tile.view<3, f32, global>
// CHECK: %36 = tile.view %y offset %35 sizes[%30, %31] strides[%32, %33] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK: tile.store %22, %36[%zero, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK-NOT: tensor<{{[0-9]+}}x{{[0-9]+}}x
