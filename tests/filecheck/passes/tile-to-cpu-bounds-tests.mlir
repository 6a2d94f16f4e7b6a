// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Whether all of a nest lies inside, lanes side by side, is tested once in front of it. If not, a careful version runs,
// which leaves every access its own tests.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [M, N]] grid ["(M + 3)//4"] {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %four : index
  %a = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<4x16xf32>
  %b = tile.ew<exp> %a : tensor<4x16xf32> -> tensor<4x16xf32>
  tile.store %b, %y[%row, %zero] : tensor<4x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) shapes [[M, N], [M, N]] grid ["(M + 3)//4"] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       tile.dim {{%\w+}}, 0 : !tile.view<2, f32, global>
// CHECK:       arith.cmpi sge, {{%\w+}}, {{%\w+}} : index
// CHECK:       arith.cmpi sle, {{%\w+}}, {{%\w+}} : index
// CHECK:       tile.dim {{%\w+}}, 1 : !tile.view<2, f32, global>
// CHECK:       arith.cmpi sle, {{%\w+}}, {{%\w+}} : index
// CHECK:       tile.stride {{%\w+}}, 1 : !tile.view<2, f32, global>
// CHECK:       arith.cmpi eq, {{%\w+}}, {{%\w+}} : index
// CHECK:       tile.dim {{%\w+}}, 0 : !tile.view<2, f32, global>
// CHECK:       arith.cmpi sge, {{%\w+}}, {{%\w+}} : index
// CHECK:       arith.cmpi sle, {{%\w+}}, {{%\w+}} : index
// CHECK:       tile.dim {{%\w+}}, 1 : !tile.view<2, f32, global>
// CHECK:       arith.cmpi sle, {{%\w+}}, {{%\w+}} : index
// CHECK:       tile.stride {{%\w+}}, 1 : !tile.view<2, f32, global>
// CHECK:       arith.cmpi eq, {{%\w+}}, {{%\w+}} : index
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<1x16xf32>
// CHECK:           tile.ew<exp> {{%\w+}} : tensor<1x16xf32> -> tensor<1x16xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<1x16xf32>, !tile.view<2, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK:             tile.ew<exp> {{%\w+}} : tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:             tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !tile.view<2, f32, global>
