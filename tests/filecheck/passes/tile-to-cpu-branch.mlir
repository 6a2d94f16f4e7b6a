// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Tiles that a branch gives go into buffers, which both sides fill; numbers stay values.
tile.func @f(%x: !tile.view<2, f32, global>, %flag: i1, %n: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 8], [], [], [4, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<4x8xf32>
  %b, %s, %k = scf.if %flag -> (tensor<4x8xf32>, tensor<4xf32>, index) {
    %c = tile.ew<exp> %a : tensor<4x8xf32> -> tensor<4x8xf32>
    %d = tile.reduce<sum> %c, 1 : tensor<4x8xf32> -> tensor<4xf32>
    scf.yield %c, %d, %zero : tensor<4x8xf32>, tensor<4xf32>, index
  } else {
    %d = tile.reduce<max> %a, 1 : tensor<4x8xf32> -> tensor<4xf32>
    scf.yield %a, %d, %one : tensor<4x8xf32>, tensor<4xf32>, index
  }
  %column = tile.expand %s, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %all = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x8xf32>
  %e = tile.ew<sub> %b, %all : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  tile.store %e, %y[%k, %zero] : tensor<4x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>, %flag: i1, %n: index, %y: !tile.view<2, f32, global>) shapes [[4, 8], [], [], [4, 8]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<1x4xf32>
// CHECK:       cpu.buffer : !cpu.buffer<1x4xf32>
// CHECK:       cpu.buffer : !cpu.buffer<4x8xf32>
// CHECK:       cpu.buffer : !cpu.buffer<1x4xf32>
// CHECK:       cpu.buffer : !cpu.buffer<4x8xf32>
// CHECK:       scf.if {{%\w+}} -> (index) {
// CHECK:         scf.if {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<4x8xf32>
// CHECK:           tile.ew<exp> {{%\w+}} : tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4x8xf32>, !cpu.buffer<4x8xf32>
// CHECK:           tile.reduce<sum> {{%\w+}}, 1 : tensor<4x8xf32> -> tensor<4xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4xf32>, !cpu.buffer<1x4xf32>
// CHECK:         } else {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK:             tile.ew<exp> {{%\w+}} : tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<4x8xf32>
// CHECK:             tile.reduce<sum> {{%\w+}}, 1 : tensor<1x8xf32> -> tensor<1xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1xf32>, !cpu.buffer<1x4xf32>
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x8xf32> -> tensor<1x8xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<4x8xf32>
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x4xf32> -> tensor<4xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4xf32>, !cpu.buffer<1x4xf32>
// CHECK:         scf.yield {{%\w+}} : index
// CHECK:       } else {
// CHECK:         scf.if {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<4x8xf32>
// CHECK:           tile.reduce<max> {{%\w+}}, 1 : tensor<4x8xf32> -> tensor<4xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4xf32>, !cpu.buffer<1x4xf32>
// CHECK:         } else {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK:             tile.reduce<max> {{%\w+}}, 1 : tensor<1x8xf32> -> tensor<1xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1xf32>, !cpu.buffer<1x4xf32>
// CHECK:         scf.if {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<4x8xf32>
// CHECK:         } else {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<4x8xf32>
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x4xf32> -> tensor<4xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4xf32>, !cpu.buffer<1x4xf32>
// CHECK:         scf.yield {{%\w+}} : index
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x8xf32> -> tensor<1x8xf32>
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x4xf32> -> tensor<1xf32>
// CHECK:           tile.ew<sub> {{%\w+}}, {{%\w+}} : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<1x8xf32>, !tile.view<2, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x8xf32> -> tensor<1x8xf32>
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x4xf32> -> tensor<1xf32>
// CHECK:           tile.ew<sub> {{%\w+}}, {{%\w+}} : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !tile.view<2, f32, global>
