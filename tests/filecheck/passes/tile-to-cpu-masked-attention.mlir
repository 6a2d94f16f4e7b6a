// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Causal weights. Blocks of keys behind all rows change nothing: the loop ends at the last live one. Within a block, a
// group of rows stops at its last live column: the first dot and the sums of rows, and the second dot in depth.
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
    %transposed = tile.trans %keys, [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
    %scores = tile.dot %queries, %transposed, %start : tensor<12x16xf32>, tensor<16x32xf32>, tensor<12x32xf32> -> tensor<12x32xf32>
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

// CHECK:            cpu.pack transposed %k
// CHECK:            cpu.pack %v
// CHECK:          } do {
// CHECK-NEXT:     ^bb0({{%\w+}}: index, [[PROGRAM:%\w+]]: index, [[KEYS:%\w+]]: !cpu.panels<16x32xf32, 16>, [[VALUES:%\w+]]: !cpu.panels<32x16xf32, 16>):
// CHECK-NEXT:       [[WEIGHTS:%\w+]] = cpu.buffer : !cpu.buffer<6x32xf32>
// CHECK-NEXT:       [[TOTAL:%\w+]] = cpu.buffer : !cpu.buffer<1x12xf32>
// CHECK-NEXT:       [[ACC:%\w+]] = cpu.buffer : !cpu.buffer<12x16xf32>
// CHECK-NEXT:       [[QUERIES:%\w+]] = cpu.buffer : !cpu.buffer<12x16xf32>
// The last live block: size or 12 · program + 12, whichever is less.
// CHECK:            [[SIZE:%\w+]] = tile.dim %k, 0
// CHECK:            [[FIRST:%\d+]] = arith.muli [[PROGRAM]],
// CHECK-NEXT:       [[PAST:%\w+]] = arith.addi {{%\w+}}, [[FIRST]]
// CHECK-NEXT:       [[LAST:%\w+]] = arith.minsi [[SIZE]], [[PAST]]
// CHECK-NEXT:       scf.for [[AT:%\w+]] = {{%\w+}} to [[LAST]] step
// CHECK:              scf.for [[ROW:%\w+]] =
// The first dead column of these rows: 6 + 12 · program + row − block, from 0 to 32.
// CHECK:                [[WIDTH:%\w+]] = arith.constant 32 : index
// CHECK:                [[LINE:%\w+]] = arith.addi {{%\w+}}, [[ROW]] : index
// CHECK-NEXT:           [[MINUS:%\w+]] = arith.constant -1 : index
// CHECK-NEXT:           [[BACK:%\w+]] = arith.muli [[AT]], [[MINUS]] : index
// CHECK-NEXT:           [[DEAD:%\w+]] = arith.addi [[LINE]], [[BACK]] : index
// CHECK-NEXT:           [[SOONER:%\w+]] = arith.minsi [[WIDTH]], [[DEAD]] : index
// CHECK:                [[LIVE:%\w+]] = arith.maxsi [[SOONER]],
// CHECK:                [[STEPS:%\w+]] = arith.minsi
// CHECK-NEXT:           scf.for {{%\w+}} = {{%\w+}} to [[STEPS]] step
// CHECK:                  cpu.dot [[QUERIES]][[[ROW]]], [[KEYS]]
// CHECK:                  [[MADE:%\w+]] = tile.ew<exp>
// CHECK-NEXT:             cpu.store [[MADE]], [[WEIGHTS]]
// CHECK-NEXT:             cpu.partial<sum> {{%\w+}}, [[MADE]]
// CHECK:                [[OLD:%\w+]] = cpu.load [[ACC]][[[ROW]],
// CHECK:                [[NEW:%\w+]] = cpu.dot [[WEIGHTS]]{{.*}}, [[VALUES]]{{.*}}, [[OLD]] depth {{%\w+}} :
// CHECK-NEXT:           cpu.store [[NEW]], [[ACC]][[[ROW]],
// CHECK-NEXT:           cpu.store {{%\w+}}, [[TOTAL]]
