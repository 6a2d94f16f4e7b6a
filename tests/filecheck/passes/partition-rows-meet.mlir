// RUN: tessera opt %s -p partition-rows{rows=4} | filecheck %s
// Rows are added up: they stay together.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[16, 8], [16, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<16x8xf32>
  %sum = tile.reduce<sum> %a, 0 : tensor<16x8xf32> -> tensor<8xf32>
  %line = tile.expand %sum, 0 : tensor<8xf32> -> tensor<1x8xf32>
  %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<16x8xf32>
  %b = tile.ew<sub> %a, %all : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  tile.store %b, %y[%zero, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK-NOT: scf.for
// CHECK: tile.store %b, %y[%zero, %zero] : tensor<16x8xf32>
