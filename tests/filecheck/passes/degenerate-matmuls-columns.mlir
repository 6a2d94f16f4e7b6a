// RUN: tessera opt %s -p degenerate-matmuls{rows=false} | filecheck %s
// With rows=false a dot of one row stays; one of one column is a multiplication and sums along rows, unmarked.
tile.func @f(%x: !tile.view<2, f32, global>, %w: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<2, f32, global>) outputs 2 shapes [[1, 16], [16, 8], [1, 8], [8, 1]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %row = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<1x16xf32>
  %weight = tile.load %w[%zero, %zero] : !tile.view<2, f32, global> -> tensor<16x8xf32>
  %clear = tile.full %nothing : tensor<1x8xf32>
  %one = tile.dot %row, %weight, %clear : tensor<1x16xf32>, tensor<16x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
  %turned = tile.trans %weight, [1, 0] : tensor<16x8xf32> -> tensor<8x16xf32>
  %column = tile.trans %row, [1, 0] : tensor<1x16xf32> -> tensor<16x1xf32>
  %empty = tile.full %nothing : tensor<8x1xf32>
  %other = tile.dot %turned, %column, %empty : tensor<8x16xf32>, tensor<16x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
  tile.store %one, %y[%zero, %zero] : tensor<1x8xf32>, !tile.view<2, f32, global>
  tile.store %other, %z[%zero, %zero] : tensor<8x1xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:      %one = tile.dot %row, %weight, %clear
// CHECK:      [[PRODUCT:%.+]] = tile.ew<mul> %turned, {{%.+}} : tensor<8x16xf32>
// CHECK-NEXT: {{%.+}} = tile.reduce<sum> [[PRODUCT]], 1
// CHECK-NOT:  tile.dot
