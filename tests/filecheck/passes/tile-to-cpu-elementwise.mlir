// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// A chain of ops is one nest: a loop over steps of registers, in which no tile is ever whole. What is left over follows.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[40], [40]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %size = arith.constant 40 : index
  %from = tile.view %x offset %zero sizes[%size] strides[%one] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  %to = tile.view %y offset %zero sizes[%size] strides[%one] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  %a = tile.load %from[%zero] : !tile.view<1, f32, global> -> tensor<40xf32>
  %b = tile.ew<exp> %a : tensor<40xf32> -> tensor<40xf32>
  %c = tile.ew<add> %b, %a : tensor<40xf32>, tensor<40xf32> -> tensor<40xf32>
  tile.store %c, %to[%zero] : tensor<40xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) shapes [[40], [40]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         tile.load {{%\w+}}[{{%\w+}}] {inside} : !tile.view<1, f32, global> -> tensor<16xf32>
// CHECK:         tile.ew<exp> {{%\w+}} : tensor<16xf32> -> tensor<16xf32>
// CHECK:         tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] {inside} : tensor<16xf32>, !tile.view<1, f32, global>
// CHECK:       tile.load {{%\w+}}[{{%\w+}}] {inside} : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK:       tile.ew<exp> {{%\w+}} : tensor<8xf32> -> tensor<8xf32>
// CHECK:       tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK:       tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] {inside} : tensor<8xf32>, !tile.view<1, f32, global>
