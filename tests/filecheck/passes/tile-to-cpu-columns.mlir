// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// What is kept in a buffer may be needed by columns: a row of its transpose is a column of the buffer.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[3, 5], [3]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<3x5xf32>
  %b = tile.ew<exp> %a : tensor<3x5xf32> -> tensor<3x5xf32>
  %c = tile.trans %b, [1, 0] : tensor<3x5xf32> -> tensor<5x3xf32>
  %s = tile.reduce<sum> %c, 0 : tensor<5x3xf32> -> tensor<3xf32>
  tile.store %s, %y[%zero] : tensor<3xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[3, 5], [3]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<1x3xf32>
// CHECK:       cpu.buffer : !cpu.buffer<3x5xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<1x5xf32>
// CHECK:           tile.ew<exp> {{%\w+}} : tensor<1x5xf32> -> tensor<1x5xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x5xf32>, !cpu.buffer<3x5xf32>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x5xf32>
// CHECK:           tile.ew<exp> {{%\w+}} : tensor<1x5xf32> -> tensor<1x5xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x5xf32>, !cpu.buffer<3x5xf32>
// CHECK:       tile.full {{%\w+}} : tensor<1x3xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} iter_args({{%\w+}} = {{%\w+}}) -> (tensor<1x3xf32>) {
// CHECK:         cpu.load column {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<3x5xf32> -> tensor<3x1xf32>
// CHECK:         tile.trans {{%\w+}}, [1, 0] : tensor<3x1xf32> -> tensor<1x3xf32>
// CHECK:         tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<1x3xf32>, tensor<1x3xf32> -> tensor<1x3xf32>
// CHECK:       tile.reduce<sum> {{%\w+}}, 0 : tensor<1x3xf32> -> tensor<3xf32>
// CHECK:       cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<3xf32>, !cpu.buffer<1x3xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x3xf32> -> tensor<3xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] {inside} : tensor<3xf32>, !tile.view<1, f32, global>
// CHECK:       } else {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x3xf32> -> tensor<3xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] : tensor<3xf32>, !tile.view<1, f32, global>
