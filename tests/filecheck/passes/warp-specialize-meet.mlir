// RUN: tessera opt %s -p "warp-specialize{consumers=2 depth=3}" | filecheck %s
// Rows are added up: there are no shares.
tile.func @f(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[16, 8], [8, 8], [16, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<16x8xf32>
  %left = tile.load %a[%zero, %zero] : !tile.view<2, f32, global> -> tensor<16x8xf32>
  %right = tile.load %b[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x8xf32>
  %c = tile.dot %left, %right, %clear : tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  %sum = tile.reduce<sum> %c, 0 : tensor<16x8xf32> -> tensor<8xf32>
  %line = tile.expand %sum, 0 : tensor<8xf32> -> tensor<1x8xf32>
  %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<16x8xf32>
  %d = tile.ew<sub> %c, %all : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  tile.store %d, %y[%zero, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK-NOT: pipe.
// CHECK: tile.store %d, %y[%zero, %zero] : tensor<16x8xf32>
