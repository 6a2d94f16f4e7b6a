// RUN: tessera opt %s -p merge-masks | filecheck %s
// What is masked twice with the same number is masked once, by both masks.
// CHECK:      [[SEEN:%.+]] = tile.ew<ge>
// CHECK:      [[INSIDE:%.+]] = tile.ew<lt>
// CHECK-NOT:  tile.ew<select>
// CHECK:      [[BOTH:%.+]] = tile.ew<and> [[SEEN]], [[INSIDE]]
// CHECK-NEXT: tile.ew<select> [[BOTH]], %x
// CHECK-NOT:  tile.ew<select>
tile.func @f(%a: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[8, N], [8, N]] grid [1] {
  %zero = arith.constant 0 : index
  %n = tile.dim %a, 1 : !tile.view<2, f32, global>
  %x = tile.load %a[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
  %rows = tile.iota %zero, 0 : tensor<8x16xi64>
  %columns = tile.iota %zero, 1 : tensor<8x16xi64>
  %seen = tile.ew<ge> %rows, %columns : tensor<8x16xi64>, tensor<8x16xi64> -> tensor<8x16xi1>
  %nothing = arith.constant 0xff800000 : f32
  %nothings = tile.full %nothing : tensor<8x16xf32>
  %first = tile.ew<select> %seen, %x, %nothings : tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %end = arith.index_cast %n : index to i64
  %ends = tile.full %end : tensor<8x16xi64>
  %inside = tile.ew<lt> %columns, %ends : tensor<8x16xi64>, tensor<8x16xi64> -> tensor<8x16xi1>
  %second = tile.ew<select> %inside, %first, %nothings : tensor<8x16xi1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  tile.store %second, %y[%zero, %zero] : tensor<8x16xf32>, !tile.view<2, f32, global>
  tile.return
}
