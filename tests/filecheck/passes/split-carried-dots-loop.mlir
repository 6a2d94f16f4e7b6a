// RUN: tessera opt %s -p split-carried-dots | filecheck %s
// The loop carries a sum for each product. Products outside of such loops stay.
tile.func @f(%x: !tile.view<3, f32, global>, %y: !tile.view<3, f32, global>) outputs 1 shapes [[2, 8, 64], [2, 8, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %end = arith.constant 64 : index
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<2x8x8xf32>
  %sum = scf.for %at = %zero to %end step %step iter_args(%so_far = %start) -> (tensor<2x8x8xf32>) {
    %a = tile.load %x[%zero, %zero, %at] : !tile.view<3, f32, global> -> tensor<2x8x16xf32>
    %t = tile.trans %a, [0, 2, 1] : tensor<2x8x16xf32> -> tensor<2x16x8xf32>
    %next = tile.dot %a, %t, %so_far : tensor<2x8x16xf32>, tensor<2x16x8xf32>, tensor<2x8x8xf32> -> tensor<2x8x8xf32>
    scf.yield %next : tensor<2x8x8xf32>
  }
  %square = tile.dot %sum, %sum, %start : tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32> -> tensor<2x8x8xf32>
  tile.store %square, %y[%zero, %zero, %zero] : tensor<2x8x8xf32>, !tile.view<3, f32, global>
  tile.return
}

// CHECK: %3, %4 = scf.for %at = %zero to %end step %step iter_args(%5 = %1, %6 = %2) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK: %14 = tile.load %13[%zero, %at] : !tile.view<2, f32, global> -> tensor<8x16xf32>
// CHECK: %22 = tile.load %21[%zero, %at] : !tile.view<2, f32, global> -> tensor<8x16xf32>
// CHECK: %23 = tile.trans %14, [1, 0] : tensor<8x16xf32> -> tensor<16x8xf32>
// CHECK: %24 = tile.trans %22, [1, 0] : tensor<8x16xf32> -> tensor<16x8xf32>
// CHECK: %25 = tile.dot %14, %23, %5 : tensor<8x16xf32>, tensor<16x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK: %26 = tile.dot %22, %24, %6 : tensor<8x16xf32>, tensor<16x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK: scf.yield %25, %26 : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK: %27 = tile.dot %3, %3, %1 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK: %28 = tile.dot %4, %4, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK: tile.store %27, %35[%zero, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
// CHECK: tile.store %28, %42[%zero, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
