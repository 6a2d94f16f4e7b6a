// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Rows folded away: for each group of columns a loop down the rows, its sum in registers.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[5, 20], [20]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<5x20xf32>
  %b = tile.ew<mul> %a, %a : tensor<5x20xf32>, tensor<5x20xf32> -> tensor<5x20xf32>
  %s = tile.reduce<sum> %b, 0 : tensor<5x20xf32> -> tensor<20xf32>
  tile.store %s, %y[%zero] : tensor<20xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:            [[SUMS:%\w+]] = cpu.buffer : !cpu.buffer<1x20xf32>
// CHECK-NOT:        cpu.buffer
// CHECK:            scf.for [[COL:%\w+]] =
// CHECK:              [[NOTHING:%\w+]] = tile.full {{.*}} : tensor<1x8xf32>
// CHECK:              [[FOLDED:%\w+]] = scf.for [[ROW:%\w+]] = {{.*}} iter_args([[SUM:%\w+]] = [[NOTHING]])
// CHECK:                [[A:%\w+]] = tile.load %x
// CHECK-NEXT:           [[B:%\w+]] = tile.ew<mul> [[A]], [[A]]
// CHECK-NEXT:           [[NEXT:%\w+]] = tile.ew<add> [[SUM]], [[B]]
// CHECK-NEXT:           scf.yield [[NEXT]]
// CHECK:              [[ROWS:%\w+]] = tile.reduce<sum> [[FOLDED]], 0 : tensor<1x8xf32> -> tensor<8xf32>
// CHECK-NEXT:         cpu.store [[ROWS]], [[SUMS]][{{%\w+}}, [[COL]]]
// What is left over has four columns.
// CHECK:            tile.reduce<sum> {{.*}} : tensor<1x4xf32> -> tensor<4xf32>
// CHECK:            cpu.load [[SUMS]]
// CHECK:            tile.store
