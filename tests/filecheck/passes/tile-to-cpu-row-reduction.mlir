// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Softmax: one nest, and for each group of rows a phase for the maxima, one for the weights and their sums, one for the
// shares. Values of a row stay in registers between phases; what a later phase reads of this group goes into a buffer.
tile.func @softmax(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[8, 48], [8, 48]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = arith.constant 8 : index
  %cols = arith.constant 48 : index
  %from = tile.view %x offset %zero sizes[%rows, %cols] strides[%cols, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %to = tile.view %y offset %zero sizes[%rows, %cols] strides[%cols, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %a = tile.load %from[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x48xf32>
  %top = tile.reduce<max> %a, 1 : tensor<8x48xf32> -> tensor<8xf32>
  %column = tile.expand %top, 1 : tensor<8xf32> -> tensor<8x1xf32>
  %tops = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x48xf32>
  %less = tile.ew<sub> %a, %tops : tensor<8x48xf32>, tensor<8x48xf32> -> tensor<8x48xf32>
  %weights = tile.ew<exp> %less : tensor<8x48xf32> -> tensor<8x48xf32>
  %total = tile.reduce<sum> %weights, 1 : tensor<8x48xf32> -> tensor<8xf32>
  %totals = tile.expand %total, 1 : tensor<8xf32> -> tensor<8x1xf32>
  %all = tile.broadcast %totals : tensor<8x1xf32> -> tensor<8x48xf32>
  %shares = tile.ew<div> %weights, %all : tensor<8x48xf32>, tensor<8x48xf32> -> tensor<8x48xf32>
  tile.store %shares, %to[%zero, %zero] : tensor<8x48xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:            [[KEPT:%\w+]] = cpu.buffer : !cpu.buffer<2x48xf32>
// CHECK-NOT:        cpu.buffer
// CHECK:            scf.for [[ROW:%\w+]] =
// CHECK:              [[START:%\w+]] = tile.full {{.*}} : tensor<2x8xf32>
// CHECK:              [[PART:%\w+]] = scf.for {{.*}} iter_args({{%\w+}} = [[START]]) -> (tensor<2x8xf32>) {
// CHECK:                [[A:%\w+]] = tile.load %from{{.*}} -> tensor<2x16xf32>
// CHECK-NEXT:           [[MORE:%\w+]] = cpu.partial<max> {{%\w+}}, [[A]] : tensor<2x8xf32>, tensor<2x16xf32> -> tensor<2x8xf32>
// CHECK-NEXT:           scf.yield [[MORE]]
// CHECK:              [[TOP:%\w+]] = tile.reduce<max> [[PART]], 1 : tensor<2x8xf32> -> tensor<2xf32>
// CHECK:              [[SUMS:%\w+]] = scf.for
// CHECK:                tile.load %from
// CHECK:                tile.expand [[TOP]], 1
// CHECK:                [[WEIGHTS:%\w+]] = tile.ew<exp>
// CHECK-NEXT:           cpu.store [[WEIGHTS]], [[KEPT]]
// CHECK-NEXT:           cpu.partial<sum> {{%\w+}}, [[WEIGHTS]]
// CHECK:              tile.reduce<sum> [[SUMS]], 1
// CHECK:              scf.for
// CHECK:                cpu.load [[KEPT]]
// CHECK:                tile.ew<div>
// CHECK:                tile.store {{.*}} {inside}
