// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Rows folded away: for each group of columns a loop down the rows, the sum in registers.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[5, 20], [20]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<5x20xf32>
  %b = tile.ew<mul> %a, %a : tensor<5x20xf32>, tensor<5x20xf32> -> tensor<5x20xf32>
  %s = tile.reduce<sum> %b, 0 : tensor<5x20xf32> -> tensor<20xf32>
  tile.store %s, %y[%zero] : tensor<20xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[5, 20], [20]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<1x20xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         tile.full {{%\w+}} : tensor<1x8xf32>
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} iter_args({{%\w+}} = {{%\w+}}) -> (tensor<1x8xf32>) {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK:           tile.ew<mul> {{%\w+}}, {{%\w+}} : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:           tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:         tile.reduce<sum> {{%\w+}}, 0 : tensor<1x8xf32> -> tensor<8xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x20xf32>
// CHECK:       tile.full {{%\w+}} : tensor<1x4xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} iter_args({{%\w+}} = {{%\w+}}) -> (tensor<1x4xf32>) {
// CHECK:         tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x4xf32>
// CHECK:         tile.ew<mul> {{%\w+}}, {{%\w+}} : tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
// CHECK:         tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<1x4xf32>, tensor<1x4xf32> -> tensor<1x4xf32>
// CHECK:       tile.reduce<sum> {{%\w+}}, 0 : tensor<1x4xf32> -> tensor<4xf32>
// CHECK:       cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4xf32>, !cpu.buffer<1x20xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x20xf32> -> tensor<16xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] {inside} : tensor<16xf32>, !tile.view<1, f32, global>
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x20xf32> -> tensor<4xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] {inside} : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x20xf32> -> tensor<8xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] : tensor<8xf32>, !tile.view<1, f32, global>
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x20xf32> -> tensor<4xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] : tensor<4xf32>, !tile.view<1, f32, global>
