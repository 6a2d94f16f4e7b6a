// RUN: tessera opt %s -p tile-to-cpu{level=amx} | filecheck %s
// Products of bf16 by the matrix unit: operands in whole lines, zeros in the gaps of the left one, blocks of 32 and 16.
tile.func @product(%a: !tile.view<2, bf16, global>, %b: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[40, 24], [24, 48], [40, 48]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %left = tile.load %a[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<40x24xbf16>
  %right = tile.load %b[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<24x48xbf16>
  %start = tile.full %nothing : tensor<40x48xf32>
  %sum = tile.dot %left, %right, %start : tensor<40x24xbf16>, tensor<24x48xbf16>, tensor<40x48xf32> -> tensor<40x48xf32>
  %again = tile.dot %left, %right, %sum : tensor<40x24xbf16>, tensor<24x48xbf16>, tensor<40x48xf32> -> tensor<40x48xf32>
  tile.store %again, %y[%zero, %zero] : tensor<40x48xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @product(%a: !tile.view<2, bf16, global>, %b: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) shapes [[40, 24], [24, 48], [40, 48]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:       cpu.reserve {{%\w+}} : !cpu.panels<24x48xbf16, 16, 2>
// CHECK:       cpu.pack {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}}[{{%\w+}}] : !tile.view<2, bf16, global>, !cpu.panels<24x48xbf16, 16, 2>
// CHECK:       cpu.reserve {{%\w+}} : !cpu.panels<24x48xbf16, 16, 2>
// CHECK:       cpu.pack {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}}[{{%\w+}}] : !tile.view<2, bf16, global>, !cpu.panels<24x48xbf16, 16, 2>
// CHECK:       cpu.yield {{%\w+}}, {{%\w+}} : !cpu.panels<24x48xbf16, 16, 2>, !cpu.panels<24x48xbf16, 16, 2>
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<48x24xbf16>
// CHECK:       cpu.clear {{%\w+}} : !cpu.buffer<48x24xbf16>
// CHECK:       cpu.buffer : !cpu.buffer<48x48xf32>
// CHECK:       cpu.buffer : !cpu.buffer<48x48xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, bf16, global> -> tensor<1x24xbf16>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x24xbf16>, !cpu.buffer<48x24xbf16>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, bf16, global> -> tensor<1x16xbf16>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x16xbf16>, !cpu.buffer<48x24xbf16>
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, bf16, global> -> tensor<1x8xbf16>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xbf16>, !cpu.buffer<48x24xbf16>
// CHECK:       cpu.matmul {{%\w+}}, {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}] size [32, 32] : !cpu.buffer<48x24xbf16>, !cpu.panels<24x48xbf16, 16, 2>, !cpu.buffer<48x48xf32>
// CHECK:       cpu.matmul {{%\w+}}, {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}] size [32, 16] : !cpu.buffer<48x24xbf16>, !cpu.panels<24x48xbf16, 16, 2>, !cpu.buffer<48x48xf32>
// CHECK:       cpu.matmul {{%\w+}}, {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}] size [16, 32] : !cpu.buffer<48x24xbf16>, !cpu.panels<24x48xbf16, 16, 2>, !cpu.buffer<48x48xf32>
// CHECK:       cpu.matmul {{%\w+}}, {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}] size [16, 16] : !cpu.buffer<48x24xbf16>, !cpu.panels<24x48xbf16, 16, 2>, !cpu.buffer<48x48xf32>
// CHECK:       cpu.matmul added {{%\w+}}, {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}] size [32, 32] : !cpu.buffer<48x24xbf16>, !cpu.panels<24x48xbf16, 16, 2>, !cpu.buffer<48x48xf32>
// CHECK:       cpu.matmul added {{%\w+}}, {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}] size [32, 16] : !cpu.buffer<48x24xbf16>, !cpu.panels<24x48xbf16, 16, 2>, !cpu.buffer<48x48xf32>
// CHECK:       cpu.matmul added {{%\w+}}, {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}] size [16, 32] : !cpu.buffer<48x24xbf16>, !cpu.panels<24x48xbf16, 16, 2>, !cpu.buffer<48x48xf32>
// CHECK:       cpu.matmul added {{%\w+}}, {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}] size [16, 16] : !cpu.buffer<48x24xbf16>, !cpu.panels<24x48xbf16, 16, 2>, !cpu.buffer<48x48xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<48x48xf32> -> tensor<1x48xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<1x48xf32>, !tile.view<2, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<48x48xf32> -> tensor<1x16xf32>
// CHECK:             tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x16xf32>, !tile.view<2, f32, global>
