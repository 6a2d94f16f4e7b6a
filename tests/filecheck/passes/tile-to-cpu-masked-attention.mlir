// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Causal attention. Blocks of keys that lie behind all rows are left out: the loop ends sooner. Within a block, each
// group of rows stops at its last live column: the first product, the maxima, the weights, and the depth of the second.
tile.func @causal(%q: !tile.view<2, f32, global>, %k: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[S, 16], [S, 16], [S, 16], [S, 16]] grid ["S//12"] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %twelve = arith.constant 12 : index
  %width = arith.constant 16 : index
  %block = arith.constant 32 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %twelve : index
  %size = tile.dim %k, 0 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %least = arith.constant 0xff800000 : f32
  %queries = tile.load %q[%row, %zero] : !tile.view<2, f32, global> -> tensor<12x16xf32>
  %acc0 = tile.full %nothing : tensor<12x16xf32>
  %total0 = tile.full %nothing : tensor<12x1xf32>
  %dead = tile.full %least : tensor<12x32xf32>
  %start = tile.full %nothing : tensor<12x32xf32>
  %acc, %total = scf.for %at = %zero to %size step %block iter_args(%acc1 = %acc0, %total1 = %total0) -> (tensor<12x16xf32>, tensor<12x1xf32>) {
    %keys = tile.load %k[%at, %zero] : !tile.view<2, f32, global> -> tensor<32x16xf32>
    %turned = tile.trans %keys, [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
    %scores = tile.dot %queries, %turned, %start : tensor<12x16xf32>, tensor<16x32xf32>, tensor<12x32xf32> -> tensor<12x32xf32>
    %rows = tile.iota %row, 0 : tensor<12x32xi64>
    %cols = tile.iota %at, 1 : tensor<12x32xi64>
    %live = tile.ew<ge> %rows, %cols : tensor<12x32xi64>, tensor<12x32xi64> -> tensor<12x32xi1>
    %masked = tile.ew<select> %live, %scores, %dead : tensor<12x32xi1>, tensor<12x32xf32>, tensor<12x32xf32> -> tensor<12x32xf32>
    %weights = tile.ew<exp> %masked : tensor<12x32xf32> -> tensor<12x32xf32>
    %sums = tile.reduce<sum> %weights, 1 : tensor<12x32xf32> -> tensor<12xf32>
    %column = tile.expand %sums, 1 : tensor<12xf32> -> tensor<12x1xf32>
    %total2 = tile.ew<add> %total1, %column : tensor<12x1xf32>, tensor<12x1xf32> -> tensor<12x1xf32>
    %values = tile.load %v[%at, %zero] : !tile.view<2, f32, global> -> tensor<32x16xf32>
    %acc2 = tile.dot %weights, %values, %acc1 : tensor<12x32xf32>, tensor<32x16xf32>, tensor<12x16xf32> -> tensor<12x16xf32>
    scf.yield %acc2, %total2 : tensor<12x16xf32>, tensor<12x1xf32>
  }
  %all = tile.broadcast %total : tensor<12x1xf32> -> tensor<12x16xf32>
  %shares = tile.ew<div> %acc, %all : tensor<12x16xf32>, tensor<12x16xf32> -> tensor<12x16xf32>
  tile.store %shares, %y[%row, %zero] : tensor<12x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @causal(%q: !tile.view<2, f32, global>, %k: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) shapes [[S, 16], [S, 16], [S, 16], [S, 16]] grid ["S//12"] {
// CHECK:     cpu.grid 0
// CHECK:     cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:       arith.ceildivsi {{%\w+}}, {{%\w+}} : index
// CHECK:       arith.maxsi {{%\w+}}, {{%\w+}} : index
// CHECK:       cpu.reserve {{%\w+}} : !cpu.panels<16x32xf32, 16>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         cpu.pack transposed {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}}[{{%\w+}}] : !tile.view<2, f32, global>, !cpu.panels<16x32xf32, 16>
// CHECK:       arith.ceildivsi {{%\w+}}, {{%\w+}} : index
// CHECK:       arith.maxsi {{%\w+}}, {{%\w+}} : index
// CHECK:       cpu.reserve {{%\w+}} : !cpu.panels<32x16xf32, 16>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         cpu.pack {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}}[{{%\w+}}] : !tile.view<2, f32, global>, !cpu.panels<32x16xf32, 16>
// CHECK:       cpu.yield {{%\w+}}, {{%\w+}} : !cpu.panels<16x32xf32, 16>, !cpu.panels<32x16xf32, 16>
// CHECK:     } do {
// CHECK:       cpu.buffer : !cpu.buffer<6x32xf32>
// CHECK:       cpu.buffer : !cpu.buffer<1x12xf32>
// CHECK:       cpu.buffer : !cpu.buffer<12x16xf32>
// CHECK:       cpu.buffer : !cpu.buffer<12x16xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : !tile.view<2, f32, global> -> tensor<1x16xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x16xf32>, !cpu.buffer<12x16xf32>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             tile.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !cpu.buffer<12x16xf32>
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         tile.full {{%\w+}} : tensor<1x16xf32>
// CHECK:         cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x16xf32>, !cpu.buffer<12x16xf32>
// CHECK:       tile.full {{%\w+}} : tensor<12x1xf32>
// CHECK:       cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<12x1xf32>, !cpu.buffer<1x12xf32>
// CHECK:       arith.minsi {{%\w+}}, {{%\w+}} : index
// CHECK:       scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           arith.minsi {{%\w+}}, {{%\w+}} : index
// CHECK:           arith.maxsi {{%\w+}}, {{%\w+}} : index
// CHECK:           arith.ceildivsi {{%\w+}}, {{%\w+}} : index
// CHECK:           tile.full {{%\w+}} : tensor<6x8xf32>
// CHECK:           arith.ceildivsi {{%\w+}}, {{%\w+}} : index
// CHECK:           arith.minsi {{%\w+}}, {{%\w+}} : index
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} iter_args({{%\w+}} = {{%\w+}}) -> (tensor<6x8xf32>) {
// CHECK:             tile.full {{%\w+}} : tensor<6x16xf32>
// CHECK:             cpu.dot {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}} : !cpu.buffer<12x16xf32>, !cpu.panels<16x32xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK:             arith.maxsi {{%\w+}}, {{%\w+}} : index
// CHECK:             arith.minsi {{%\w+}}, {{%\w+}} : index
// CHECK:             tile.ew<ge> {{%\w+}}, {{%\w+}} : tensor<6x16xi32>, tensor<6x16xi32> -> tensor<6x16xi1>
// CHECK:             tile.full {{%\w+}} : tensor<6x16xf32>
// CHECK:             tile.ew<select> {{%\w+}}, {{%\w+}}, {{%\w+}} : tensor<6x16xi1>, tensor<6x16xf32>, tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK:             tile.ew<exp> {{%\w+}} : tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK:             cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<6x16xf32>, !cpu.buffer<6x32xf32>
// CHECK:             cpu.partial<sum> {{%\w+}}, {{%\w+}} : tensor<6x8xf32>, tensor<6x16xf32> -> tensor<6x8xf32>
// CHECK:           tile.reduce<sum> {{%\w+}}, 1 : tensor<6x8xf32> -> tensor<6xf32>
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x12xf32> -> tensor<6x1xf32>
// CHECK:           tile.ew<add> {{%\w+}}, {{%\w+}} : tensor<6x1xf32>, tensor<6x1xf32> -> tensor<6x1xf32>
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<12x16xf32> -> tensor<6x16xf32>
// CHECK:           arith.ceildivsi {{%\w+}}, {{%\w+}} : index
// CHECK:           cpu.dot {{%\w+}}[{{%\w+}}], {{%\w+}}[{{%\w+}}, {{%\w+}}], {{%\w+}} depth {{%\w+}} : !cpu.buffer<6x32xf32>, !cpu.panels<32x16xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<6x16xf32>, !cpu.buffer<12x16xf32>
// CHECK:           cpu.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<6x1xf32>, !cpu.buffer<1x12xf32>
// CHECK:       scf.if {{%\w+}} {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<12x16xf32> -> tensor<1x16xf32>
// CHECK:           cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x12xf32> -> tensor<1x1xf32>
// CHECK:           tile.ew<div> {{%\w+}}, {{%\w+}} : tensor<1x16xf32>, tensor<1x16xf32> -> tensor<1x16xf32>
// CHECK:           tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] {inside} : tensor<1x16xf32>, !tile.view<2, f32, global>
// CHECK:       } else {
// CHECK:         scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:           scf.for {{%\w+}} = {{%\w+}} to {{%\w+}} step {{%\w+}} {
// CHECK:             cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<12x16xf32> -> tensor<1x8xf32>
// CHECK:             cpu.load {{%\w+}}[{{%\w+}}, {{%\w+}}] : !cpu.buffer<1x12xf32> -> tensor<1x1xf32>
// CHECK:             tile.ew<div> {{%\w+}}, {{%\w+}} : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK:             tile.store {{%\w+}}, {{%\w+}}[{{%\w+}}, {{%\w+}}] : tensor<1x8xf32>, !tile.view<2, f32, global>
