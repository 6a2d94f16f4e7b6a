// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// What a loop carries lives in one buffer. A sum is rewritten in place; what is swapped goes aside first; a product's
// left operand is not written over before the product is done.
tile.func @sum(%x: !tile.view<1, f32, global>, %n: index, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [], [8]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<8xf32>
  %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %start) -> (tensor<8xf32>) {
    %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<8xf32>
    %next = tile.ew<add> %acc, %a : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  tile.store %sum, %y[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.return
}
tile.func @swap(%n: index, %u: f32, %v: f32, %y: !tile.view<1, f32, global>) outputs 1 shapes [[], [], [], [8]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = tile.full %u : tensor<8xf32>
  %b = tile.full %v : tensor<8xf32>
  %c, %d = scf.for %i = %zero to %n step %one iter_args(%p = %a, %q = %b) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %q, %p : tensor<8xf32>, tensor<8xf32>
  }
  tile.store %c, %y[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.return
}
tile.func @powers(%n: index, %u: f32, %w: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[], [], [24, 24], [4, 24]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = tile.full %u : tensor<4x24xf32>
  %b = scf.for %i = %zero to %n step %one iter_args(%p = %a) -> (tensor<4x24xf32>) {
    %right = tile.load %w[%zero, %zero] : !tile.view<2, f32, global> -> tensor<24x24xf32>
    %q = tile.dot %p, %right, %a : tensor<4x24xf32>, tensor<24x24xf32>, tensor<4x24xf32> -> tensor<4x24xf32>
    scf.yield %q : tensor<4x24xf32>
  }
  tile.store %b, %y[%zero, %zero] : tensor<4x24xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @sum(%x: !tile.view<1, f32, global>, %n: index, %y: !tile.view<1, f32, global>) shapes [[N], [], [8]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<1x8xf32>
// CHECK:       tile.full {{%\w+}} : tensor<8xf32>
// CHECK:       cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x8xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         scf.if {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<8xf32>
// CHECK:           tile.load {{%\w+}}[{{%\w+}}] {inside} : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK:           tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x8xf32>
// CHECK:         } else {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<8xf32>
// CHECK:           tile.load {{%\w+}}[{{%\w+}}] : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK:           tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x8xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<8xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] {inside} : tensor<8xf32>, !tile.view<1, f32, global>
// CHECK:       } else {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<8xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] : tensor<8xf32>, !tile.view<1, f32, global>
// CHECK{LITERAL}:   cpu.func @swap(%n: index, %u: f32, %v: f32, %y: !tile.view<1, f32, global>) shapes [[], [], [], [8]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<1x8xf32>
// CHECK:       cpu.buffer : !cpu.buffer<1x8xf32>
// CHECK:       cpu.buffer : !cpu.buffer<1x8xf32>
// CHECK:       cpu.buffer : !cpu.buffer<1x8xf32>
// CHECK:       tile.full {{%\w+}} : tensor<8xf32>
// CHECK:       cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x8xf32>
// CHECK:       tile.full {{%\w+}} : tensor<8xf32>
// CHECK:       cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x8xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<8xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x8xf32>
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<8xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<8xf32>, !cpu.buffer<1x8xf32>
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<1x8xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<1x8xf32>
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<1x8xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<1x8xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<8xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] {inside} : tensor<8xf32>, !tile.view<1, f32, global>
// CHECK:       } else {
// CHECK:         cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x8xf32> -> tensor<8xf32>
// CHECK:         tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}] : tensor<8xf32>, !tile.view<1, f32, global>
// CHECK{LITERAL}:   cpu.func @powers(%n: index, %u: f32, %w: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) shapes [[], [], [24, 24], [4, 24]] grid [1] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:       cpu.reserve {{%\w+}} : !cpu.panels<24x24xf32, 16>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         cpu.pack {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}}[{{%\w+}}] : !tile.view<2, f32, global>, !cpu.panels<24x24xf32, 16>
// CHECK:       cpu.yield {{%\w+}} : !cpu.panels<24x24xf32, 16>
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<4x24xf32>
// CHECK:       cpu.buffer : !cpu.buffer<4x24xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         tile.full {{%\w+}} : tensor<1x16xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x16xf32>, !cpu.buffer<4x24xf32>
// CHECK:         tile.full {{%\w+}} : tensor<1x8xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<4x24xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         tile.full {{%\w+}} : tensor<4x16xf32>
// CHECK:         cpu.dot {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}} : !cpu.buffer<4x24xf32>, !cpu.panels<24x24xf32, 16>, tensor<4x16xf32> -> tensor<4x16xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4x16xf32>, !cpu.buffer<4x24xf32>
// CHECK:         tile.full {{%\w+}} : tensor<4x8xf32>
// CHECK:         cpu.dot {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}} : !cpu.buffer<4x24xf32>, !cpu.panels<24x24xf32, 16>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<4x8xf32>, !cpu.buffer<4x24xf32>
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x24xf32> -> tensor<1x16xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x16xf32>, !cpu.buffer<4x24xf32>
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x24xf32> -> tensor<1x8xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<4x24xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x24xf32> -> tensor<1x16xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<1x16xf32>, !tile.view<2, f32, global>
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x24xf32> -> tensor<1x8xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<1x8xf32>, !tile.view<2, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<4x24xf32> -> tensor<1x8xf32>
// CHECK:             tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !tile.view<2, f32, global>
