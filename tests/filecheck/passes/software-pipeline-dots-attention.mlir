// RUN: tessera opt %s -p software-pipeline-dots | filecheck %s
// The first dot of an iteration comes before the second of the one before; accumulators are scaled at the end.
tile.func @f(%q: !tile.view<2, f32, global>, %k: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[8, 4], [N, 4], [N, 4], [8, 4]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %n = tile.dim %k, 0 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<8x8xf32>
  %none = tile.full %nothing : tensor<8x4xf32>
  %least = tile.full %nothing : tensor<8x1xf32>
  %a = tile.load %q[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
  %sum, %most = scf.for %i = %zero to %n step %eight iter_args(%acc = %none, %top = %least) -> (tensor<8x4xf32>, tensor<8x1xf32>) {
    %keys = tile.load %k[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
    %values = tile.load %v[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
    %transposed = tile.trans %keys, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    %scores = tile.dot %a, %transposed, %clear : tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %high = tile.reduce<max> %scores, 1 : tensor<8x8xf32> -> tensor<8xf32>
    %column = tile.expand %high, 1 : tensor<8xf32> -> tensor<8x1xf32>
    %more = tile.ew<max> %top, %column : tensor<8x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
    %grown = tile.ew<sub> %top, %more : tensor<8x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
    %factor = tile.ew<exp2> %grown : tensor<8x1xf32> -> tensor<8x1xf32>
    %factors = tile.broadcast %factor : tensor<8x1xf32> -> tensor<8x4xf32>
    %scaled = tile.ew<mul> %acc, %factors : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
    %tops = tile.broadcast %more : tensor<8x1xf32> -> tensor<8x8xf32>
    %below = tile.ew<sub> %scores, %tops : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %weights = tile.ew<exp2> %below : tensor<8x8xf32> -> tensor<8x8xf32>
    %sums = tile.dot %weights, %values, %scaled : tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
    scf.yield %sums, %more : tensor<8x4xf32>, tensor<8x1xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%q: !tile.view<2, f32, global>, %k: !tile.view<2, f32, global>, %v: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[8, 4], [N, 4], [N, 4], [8, 4]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %eight = arith.constant 8 : index
// CHECK-NEXT:     %n = tile.dim %k, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<8x8xf32>
// CHECK-NEXT:     %none = tile.full %nothing : tensor<8x4xf32>
// CHECK-NEXT:     %least = tile.full %nothing : tensor<8x1xf32>
// CHECK-NEXT:     %a = tile.load %q[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
// CHECK-NEXT:     %0 = arith.cmpi slt, %zero, %n : index
// CHECK-NEXT:     %sum, %most = scf.if %0 -> (tensor<8x4xf32>, tensor<8x1xf32>) {
// CHECK-NEXT:       %keys = tile.load %k[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
// CHECK-NEXT:       %transposed = tile.trans %keys, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %scores = tile.dot %a, %transposed, %clear : tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT:       %high = tile.reduce<max> %scores, 1 : tensor<8x8xf32> -> tensor<8xf32>
// CHECK-NEXT:       %column = tile.expand %high, 1 : tensor<8xf32> -> tensor<8x1xf32>
// CHECK-NEXT:       %more = tile.ew<max> %least, %column : tensor<8x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
// CHECK-NEXT:       %grown = tile.ew<sub> %least, %more : tensor<8x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
// CHECK-NEXT:       %factor = tile.ew<exp2> %grown : tensor<8x1xf32> -> tensor<8x1xf32>
// CHECK-NEXT:       %factors = tile.broadcast %factor : tensor<8x1xf32> -> tensor<8x4xf32>
// CHECK-NEXT:       %tops = tile.broadcast %more : tensor<8x1xf32> -> tensor<8x8xf32>
// CHECK-NEXT:       %below = tile.ew<sub> %scores, %tops : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT:       %weights = tile.ew<exp2> %below : tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT:       %scaled = tile.ew<mul> %none, %factors : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
// CHECK-NEXT:       %1 = arith.addi %zero, %eight : index
// CHECK-NEXT:       %most_1, %weights_1, %scaled_1 = scf.for %i = %1 to %n step %eight iter_args(%top = %more, %weights_2 = %weights, %scaled_2 = %scaled) -> (tensor<8x1xf32>, tensor<8x8xf32>, tensor<8x4xf32>) {
// CHECK-NEXT:         %keys_1 = tile.load %k[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
// CHECK-NEXT:         %transposed_1 = tile.trans %keys_1, [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
// CHECK-NEXT:         %scores_1 = tile.dot %a, %transposed_1, %clear : tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT:         %2 = arith.subi %i, %eight : index
// CHECK-NEXT:         %values = tile.load %v[%2, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
// CHECK-NEXT:         %sums = tile.dot %weights_2, %values, %scaled_2 : tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
// CHECK-NEXT:         %high_1 = tile.reduce<max> %scores_1, 1 : tensor<8x8xf32> -> tensor<8xf32>
// CHECK-NEXT:         %column_1 = tile.expand %high_1, 1 : tensor<8xf32> -> tensor<8x1xf32>
// CHECK-NEXT:         %more_1 = tile.ew<max> %top, %column_1 : tensor<8x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
// CHECK-NEXT:         %grown_1 = tile.ew<sub> %top, %more_1 : tensor<8x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
// CHECK-NEXT:         %factor_1 = tile.ew<exp2> %grown_1 : tensor<8x1xf32> -> tensor<8x1xf32>
// CHECK-NEXT:         %factors_1 = tile.broadcast %factor_1 : tensor<8x1xf32> -> tensor<8x4xf32>
// CHECK-NEXT:         %tops_1 = tile.broadcast %more_1 : tensor<8x1xf32> -> tensor<8x8xf32>
// CHECK-NEXT:         %below_1 = tile.ew<sub> %scores_1, %tops_1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT:         %weights_3 = tile.ew<exp2> %below_1 : tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT:         %scaled_3 = tile.ew<mul> %sums, %factors_1 : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
// CHECK-NEXT:         scf.yield %more_1, %weights_3, %scaled_3 : tensor<8x1xf32>, tensor<8x8xf32>, tensor<8x4xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:       %3 = arith.subi %n, %zero : index
// CHECK-NEXT:       %4 = arith.ceildivsi %3, %eight : index
// CHECK-NEXT:       %5 = arith.constant 1 : index
// CHECK-NEXT:       %6 = arith.subi %4, %5 : index
// CHECK-NEXT:       %7 = arith.muli %6, %eight : index
// CHECK-NEXT:       %8 = arith.addi %zero, %7 : index
// CHECK-NEXT:       %values_1 = tile.load %v[%8, %zero] : !tile.view<2, f32, global> -> tensor<8x4xf32>
// CHECK-NEXT:       %sums_1 = tile.dot %weights_1, %values_1, %scaled_1 : tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
// CHECK-NEXT:       scf.yield %sums_1, %most_1 : tensor<8x4xf32>, tensor<8x1xf32>
// CHECK-NEXT:     } else {
// CHECK-NEXT:       scf.yield %none, %least : tensor<8x4xf32>, tensor<8x1xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.store %sum, %y[%zero, %zero] : tensor<8x4xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
