// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// A transposed load is cut into squares of lanes, which are transposed in registers. What is in a buffer already is read by
// columns where only one row of its transpose is wanted.
tile.func @squares(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[24, 16], [16, 24]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %long = arith.constant 24 : index
  %short = arith.constant 16 : index
  %from = tile.view %x offset %zero sizes[%long, %short] strides[%short, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %to = tile.view %y offset %zero sizes[%short, %long] strides[%long, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %a = tile.load %from[%zero, %zero] : !tile.view<2, f32, global> -> tensor<24x16xf32>
  %b = tile.trans %a, [1, 0] : tensor<24x16xf32> -> tensor<16x24xf32>
  tile.store %b, %to[%zero, %zero] : tensor<16x24xf32>, !tile.view<2, f32, global>
  tile.return
}
tile.func @columns(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[3, 5], [3]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<3x5xf32>
  %b = tile.ew<exp> %a : tensor<3x5xf32> -> tensor<3x5xf32>
  %c = tile.trans %b, [1, 0] : tensor<3x5xf32> -> tensor<5x3xf32>
  %s = tile.reduce<sum> %c, 0 : tensor<5x3xf32> -> tensor<3xf32>
  tile.store %s, %y[%zero] : tensor<3xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:          cpu.func @squares
// CHECK-NOT:        cpu.buffer
// CHECK:            scf.for [[ROW:%\w+]] =
// CHECK:              scf.for [[COL:%\w+]] =
// CHECK:                [[DOWN:%\w+]] = arith.addi %zero, [[COL]]
// CHECK-NEXT:           [[ACROSS:%\w+]] = arith.addi %zero, [[ROW]]
// CHECK-NEXT:           [[SQUARE:%\w+]] = tile.load %from[[[DOWN]], [[ACROSS]]] {inside} : !tile.view<2, f32, global> -> tensor<8x8xf32>
// CHECK-NEXT:           [[TURNED:%\w+]] = tile.trans [[SQUARE]], [1, 0]
// CHECK:                tile.store [[TURNED]], %to{{.*}} {inside}
// CHECK:          cpu.func @columns
// CHECK:            [[KEPT:%\w+]] = cpu.buffer : !cpu.buffer<3x5xf32>
// CHECK:            tile.ew<exp>
// CHECK-NEXT:       cpu.store {{%\w+}}, [[KEPT]]
// CHECK:            scf.for [[AT:%\w+]] = {{.*}} iter_args
// CHECK-NEXT:         [[COLUMN:%\w+]] = cpu.load column [[KEPT]][{{%\w+}}, [[AT]]] : !cpu.buffer<3x5xf32> -> tensor<3x1xf32>
// CHECK-NEXT:         tile.trans [[COLUMN]], [1, 0] : tensor<3x1xf32> -> tensor<1x3xf32>
