// RUN: tessera opt %s -p "tile-to-cpu{level=avx2 fuse=false}" | filecheck %s
// Without fusion every op that is not free has a nest of its own, and hands its tile on through a buffer.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[16], [16]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<16xf32>
  %b = tile.ew<exp> %a : tensor<16xf32> -> tensor<16xf32>
  %c = tile.ew<log> %b : tensor<16xf32> -> tensor<16xf32>
  tile.store %c, %y[%zero] : tensor<16xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) shapes [[16], [16]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<1x16xf32>
// CHECK:       cpu.buffer : !cpu.buffer<1x16xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         tile.load {{%\w+}}[{{%\w+}}] {inside} : !tile.view<1, f32, global> -> tensor<16xf32>
// CHECK:         tile.ew<exp> {{%\w+}} : tensor<16xf32> -> tensor<16xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<16xf32>, !cpu.buffer<1x16xf32>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}] : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK:           tile.ew<exp> {{%\w+}} : tensor<8xf32> -> tensor<8xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x16xf32>
// CHECK:       cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x16xf32> -> tensor<16xf32>
// CHECK:       tile.ew<log> {{%\w+}} : tensor<16xf32> -> tensor<16xf32>
// CHECK:       cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<16xf32>, !cpu.buffer<1x16xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x16xf32> -> tensor<16xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] {inside} : tensor<16xf32>, !tile.view<1, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x16xf32> -> tensor<8xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] : tensor<8xf32>, !tile.view<1, f32, global>
