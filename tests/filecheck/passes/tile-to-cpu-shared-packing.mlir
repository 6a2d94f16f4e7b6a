// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// A right operand that all programs along one axis load the same way is packed once for them, for every turn of the loop
// around it. That axis turns fastest; the other is the outer one.
tile.func @product(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %c: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [M, N]] grid ["(M + 11)//12", "(N + 15)//16"] {
  %zero = arith.constant 0 : index
  %twelve = arith.constant 12 : index
  %sixteen = arith.constant 16 : index
  %i = tile.program_id 0
  %j = tile.program_id 1
  %row = arith.muli %i, %twelve : index
  %col = arith.muli %j, %sixteen : index
  %depth = tile.dim %a, 1 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<12x16xf32>
  %sum = scf.for %k = %zero to %depth step %sixteen iter_args(%acc = %start) -> (tensor<12x16xf32>) {
    %left = tile.load %a[%row, %k] : !tile.view<2, f32, global> -> tensor<12x16xf32>
    %right = tile.load %b[%k, %col] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %next = tile.dot %left, %right, %acc : tensor<12x16xf32>, tensor<16x16xf32>, tensor<12x16xf32> -> tensor<12x16xf32>
    scf.yield %next : tensor<12x16xf32>
  }
  tile.store %sum, %c[%row, %col] : tensor<12x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @product(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %c: !tile.view<2, f32, global>) shapes [[M, K], [K, N], [M, N]] grid ["(M + 11)//12", "(N + 15)//16"] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.grid 1
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:       arith.muli {{%\w+}}, {{%\w+}} : index
// CHECK:       tile.dim {{%\w+}}, 1 : !tile.view<2, f32, global>
// CHECK:       arith.ceildivsi {{%\w+}}, {{%\w+}} : index
// CHECK:       cpu.reserve {{%\w+}} : !cpu.panels<16x16xf32, 16>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         cpu.pack {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}}[{{%\w+}}] : !tile.view<2, f32, global>, !cpu.panels<16x16xf32, 16>
// CHECK:       cpu.yield {{%\w+}} : !cpu.panels<16x16xf32, 16>
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<6x16xf32>
// CHECK:       cpu.buffer : !cpu.buffer<12x16xf32>
// CHECK:       arith.muli {{%\w+}}, {{%\w+}} : index
// CHECK:       arith.muli {{%\w+}}, {{%\w+}} : index
// CHECK:       tile.dim {{%\w+}}, 1 : !tile.view<2, f32, global>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         tile.full {{%\w+}} : tensor<1x16xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x16xf32>, !cpu.buffer<12x16xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         tile.dim {{%\w+}}, 0 : !tile.view<2, f32, global>
// CHECK:         tile.dim {{%\w+}}, 1 : !tile.view<2, f32, global>
// CHECK:         scf.if {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<6x16xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<6x16xf32>, !cpu.buffer<6x16xf32>
// CHECK:             cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<12x16xf32> -> tensor<6x16xf32>
// CHECK:             cpu.dot {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}} : !cpu.buffer<6x16xf32>, !cpu.panels<16x16xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<6x16xf32>, !cpu.buffer<12x16xf32>
// CHECK:         } else {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:               tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<6x8xf32>
// CHECK:               cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<6x8xf32>, !cpu.buffer<6x16xf32>
// CHECK:             cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<12x16xf32> -> tensor<6x16xf32>
// CHECK:             cpu.dot {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}} : !cpu.buffer<6x16xf32>, !cpu.panels<16x16xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<6x16xf32>, !cpu.buffer<12x16xf32>
// CHECK:       tile.dim {{%\w+}}, 0 : !tile.view<2, f32, global>
// CHECK:       tile.dim {{%\w+}}, 1 : !tile.view<2, f32, global>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<12x16xf32> -> tensor<1x16xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<1x16xf32>, !tile.view<2, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<12x16xf32> -> tensor<1x8xf32>
// CHECK:             tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !tile.view<2, f32, global>
