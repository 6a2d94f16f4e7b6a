// RUN: tessera opt %s -p "widen-accumulation,degenerate-matmuls{rows=false},round-multiples,tile-to-cpu{level=avx2}" | filecheck %s
// Dots into one column, and over one, are multiplications and sums.
tile.func @into(%x: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[8, 16], [16, 1], [8, 1]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %sixteen = arith.constant 16 : index
  %from = tile.view %x offset %zero sizes[%eight, %sixteen] strides[%sixteen, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %vector = tile.view %v offset %zero sizes[%sixteen, %one] strides[%one, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %to = tile.view %y offset %zero sizes[%eight, %one] strides[%one, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %a = tile.load %from[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
  %b = tile.load %vector[%zero, %zero] : !tile.view<2, f32, global> -> tensor<16x1xf32>
  %c = tile.full %nothing : tensor<8x1xf32>
  %d = tile.dot %a, %b, %c : tensor<8x16xf32>, tensor<16x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
  tile.store %d, %to[%zero, %zero] : tensor<8x1xf32>, !tile.view<2, f32, global>
  tile.return
}
tile.func @over(%u: !tile.view<2, bf16, global>, %v: !tile.view<2, bf16, global>, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[8, 1], [1, 16], [8, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : bf16
  %a = tile.load %u[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<8x1xbf16>
  %b = tile.load %v[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<1x16xbf16>
  %c = tile.full %nothing : tensor<8x16xbf16>
  %d = tile.dot %a, %b, %c : tensor<8x1xbf16>, tensor<1x16xbf16>, tensor<8x16xbf16> -> tensor<8x16xbf16>
  tile.store %d, %y[%zero, %zero] : tensor<8x16xbf16>, !tile.view<2, bf16, global>
  tile.return
}

// CHECK-NOT:      cpu.dot
// CHECK:          cpu.func @into
// CHECK:            scf.for
// CHECK:              [[A:%\w+]] = tile.load %from{{.*}} -> tensor<2x16xf32>
// CHECK:              [[B:%\w+]] = tile.load %vector{{.*}} -> tensor<16x1xf32>
// CHECK-NEXT:         [[LINE:%\w+]] = tile.trans [[B]], [1, 0]
// CHECK-NEXT:         [[SPREAD:%\w+]] = tile.broadcast [[LINE]]
// CHECK-NEXT:         [[PRODUCT:%\w+]] = tile.ew<mul> [[A]], [[SPREAD]]
// CHECK-NEXT:         tile.reduce<sum> [[PRODUCT]], 1
// CHECK-NOT:      cpu.dot
// CHECK:          cpu.func @over
// CHECK:              tile.ew<mul> {{.*}} : tensor<1x16xf32>, tensor<1x16xf32>
// CHECK-NEXT:         tile.ew<add>
// CHECK-NEXT:         tile.ew<cast> {{.*}} -> tensor<1x16xbf16>
// CHECK-NOT:      cpu.dot
// CHECK:          cpu.return
