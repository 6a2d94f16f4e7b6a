// RUN: tessera opt %s -p drop-implied-masks,cse,dce | filecheck %s
// A store under a mask ends with its array anyway, in any part of it; what else the mask says stays.

// CHECK:      tile.write %x2, %out[%r, %c] mask %a :
// CHECK-NEXT: tile.write %x2, %out[%r, %c] : tensor
// CHECK-NEXT: tile.write %x2, %out[%c, %r] mask %inside :
tile.func @masked(%x: !tile.view<2, f32, global>, %out: !tile.view<2, f32, global>, %end: i64) outputs 0
    shapes [[M, N], [M, N], []] grid [1] {
  %zero = arith.constant 0 : index
  %x2 = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
  %row = tile.iota %zero, 0 : tensor<8x1xi64>
  %column = tile.iota %zero, 1 : tensor<1x4xi64>
  %r = tile.broadcast %row : tensor<8x1xi64> -> tensor<8x4xi64>
  %c = tile.broadcast %column : tensor<1x4xi64> -> tensor<8x4xi64>
  %m = tile.dim %out, 0 : !tile.view<2, f32, global>
  %n = tile.dim %out, 1 : !tile.view<2, f32, global>
  %m64 = arith.index_cast %m : index to i64
  %n64 = arith.index_cast %n : index to i64
  %rows = tile.full %m64 : tensor<8x1xi64>
  %columns = tile.full %n64 : tensor<1x4xi64>
  %last = tile.full %end : tensor<8x1xi64>
  %asked = tile.ew<lt> %row, %last : tensor<8x1xi64>, tensor<8x1xi64> -> tensor<8x1xi1>
  %down = tile.ew<lt> %row, %rows : tensor<8x1xi64>, tensor<8x1xi64> -> tensor<8x1xi1>
  %across = tile.ew<lt> %column, %columns : tensor<1x4xi64>, tensor<1x4xi64> -> tensor<1x4xi1>
  %a = tile.broadcast %asked : tensor<8x1xi1> -> tensor<8x4xi1>
  %d = tile.broadcast %down : tensor<8x1xi1> -> tensor<8x4xi1>
  %e = tile.broadcast %across : tensor<1x4xi1> -> tensor<8x4xi1>
  %ad = tile.ew<and> %a, %d : tensor<8x4xi1>, tensor<8x4xi1> -> tensor<8x4xi1>
  %all = tile.ew<and> %ad, %e : tensor<8x4xi1>, tensor<8x4xi1> -> tensor<8x4xi1>
  %inside = tile.ew<and> %d, %e : tensor<8x4xi1>, tensor<8x4xi1> -> tensor<8x4xi1>
  tile.write %x2, %out[%r, %c] mask %all : tensor<8x4xi1> : tensor<8x4xf32>, !tile.view<2, f32, global>, tensor<8x4xi64>, tensor<8x4xi64>
  tile.write %x2, %out[%r, %c] mask %inside : tensor<8x4xi1> : tensor<8x4xf32>, !tile.view<2, f32, global>, tensor<8x4xi64>, tensor<8x4xi64>
  tile.write %x2, %out[%c, %r] mask %inside : tensor<8x4xi1> : tensor<8x4xf32>, !tile.view<2, f32, global>, tensor<8x4xi64>, tensor<8x4xi64>
  tile.return
}
