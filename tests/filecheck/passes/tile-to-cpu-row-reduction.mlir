// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Softmax of rows: a nest of two phases for each group of rows. The first finds the maxima, the second the weights and
// their sums, which stay in registers; weights that a third needs go into a buffer of one group of rows.
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

// CHECK{LITERAL}:   cpu.func @softmax(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) shapes [[8, 48], [8, 48]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<4x48xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         tile.full {{%\w+}} : tensor<4x8xf32>
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} iter_args({{%\w+}} = {{%\w+}}) -> (tensor<4x8xf32>) {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<4x16xf32>
// CHECK:           cpu.partial<max> {{%\w+}}, {{%\w+}} : tensor<4x8xf32>, tensor<4x16xf32> -> tensor<4x8xf32>
// CHECK:         tile.reduce<max> {{%\w+}}, 1 : tensor<4x8xf32> -> tensor<4xf32>
// CHECK:         tile.full {{%\w+}} : tensor<4x8xf32>
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} iter_args({{%\w+}} = {{%\w+}}) -> (tensor<4x8xf32>) {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<4x16xf32>
// CHECK:           tile.ew<sub> {{%\w+}}, {{%\w+}} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
// CHECK:           tile.ew<exp> {{%\w+}} : tensor<4x16xf32> -> tensor<4x16xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4x16xf32>, !cpu.buffer<4x48xf32>
// CHECK:           cpu.partial<sum> {{%\w+}}, {{%\w+}} : tensor<4x8xf32>, tensor<4x16xf32> -> tensor<4x8xf32>
// CHECK:         tile.reduce<sum> {{%\w+}}, 1 : tensor<4x8xf32> -> tensor<4xf32>
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x48xf32> -> tensor<4x16xf32>
// CHECK:           tile.ew<div> {{%\w+}}, {{%\w+}} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<4x16xf32>, !tile.view<2, f32, global>
