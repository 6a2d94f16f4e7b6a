// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Products over one column and into one column are multiplications and sums.
tile.func @f(%x: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<2, f32, global>) outputs 2 shapes [[8, 16], [16, 1], [8, 1], [16, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
  %b = tile.load %v[%zero, %zero] : !tile.view<2, f32, global> -> tensor<16x1xf32>
  %c = tile.full %nothing : tensor<8x1xf32>
  %d = tile.dot %a, %b, %c : tensor<8x16xf32>, tensor<16x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
  tile.store %d, %y[%zero, %zero] : tensor<8x1xf32>, !tile.view<2, f32, global>
  %e = tile.trans %b, [1, 0] : tensor<16x1xf32> -> tensor<1x16xf32>
  %f = tile.full %nothing : tensor<16x16xf32>
  %g = tile.dot %b, %e, %f : tensor<16x1xf32>, tensor<1x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %g, %z[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<2, f32, global>) shapes [[8, 16], [16, 1], [8, 1], [16, 16]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<4x16xf32>
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<16x1xf32>
// CHECK:           tile.trans {{%\w+}}, [1, 0] : tensor<16x1xf32> -> tensor<1x16xf32>
// CHECK:           tile.ew<mul> {{%\w+}}, {{%\w+}} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
// CHECK:           tile.reduce<sum> {{%\w+}}, 1 : tensor<4x16xf32> -> tensor<4xf32>
// CHECK:           tile.full {{%\w+}} : tensor<4x1xf32>
// CHECK:           tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<4x1xf32>, !tile.view<2, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.full {{%\w+}} : tensor<1x32xf32>
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} iter_args({{%\w+}} = {{%\w+}}) -> (tensor<1x32xf32>) {
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<8x1xf32>
// CHECK:             tile.trans {{%\w+}}, [1, 0] : tensor<8x1xf32> -> tensor<1x8xf32>
// CHECK:             tile.ew<mul> {{%\w+}}, {{%\w+}} : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:             cpu.partial<sum> {{%\w+}}, {{%\w+}} : tensor<1x32xf32>, tensor<1x8xf32> -> tensor<1x32xf32>
// CHECK:           tile.reduce<sum> {{%\w+}}, 1 : tensor<1x32xf32> -> tensor<1xf32>
// CHECK:           tile.full {{%\w+}} : tensor<1x1xf32>
// CHECK:           tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<1x1xf32>, tensor<1x1xf32> -> tensor<1x1xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x1xf32>, !tile.view<2, f32, global>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.full {{%\w+}} : tensor<1x16xf32>
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<16x1xf32>
// CHECK:           tile.trans {{%\w+}}, [1, 0] : tensor<16x1xf32> -> tensor<1x16xf32>
// CHECK:           tile.ew<mul> {{%\w+}}, {{%\w+}} : tensor<1x16xf32>, tensor<1x16xf32> -> tensor<1x16xf32>
// CHECK:           tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<1x16xf32>, tensor<1x16xf32> -> tensor<1x16xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<1x16xf32>, !tile.view<2, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             tile.full {{%\w+}} : tensor<1x8xf32>
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<8x1xf32>
// CHECK:             tile.trans {{%\w+}}, [1, 0] : tensor<8x1xf32> -> tensor<1x8xf32>
// CHECK:             tile.ew<mul> {{%\w+}}, {{%\w+}} : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:             tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:             tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !tile.view<2, f32, global>
