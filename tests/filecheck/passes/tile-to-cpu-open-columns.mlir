// RUN: tessera opt %s -p tile-to-cpu{level=amx} | filecheck %s
// A window around the diagonal, from row %at on. Dots make and read the columns that any row sees, in steps of 64;
// of those, the ones that all rows see go through the sum without the mask, between two loops with it.
tile.func @window(%q: !tile.view<2, bf16, global>, %k: !tile.view<2, bf16, global>, %v: !tile.view<2, bf16, global>, %at: index, %w: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [["M", 64], ["N", 64], ["N", 64], [], [], ["M", 64]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %queries = tile.load %q[%at, %zero] : !tile.view<2, bf16, global> -> tensor<32x64xbf16>
  %keys = tile.load %k[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<512x64xbf16>
  %values = tile.load %v[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<512x64xbf16>
  %transposed = tile.trans %keys, [1, 0] : tensor<512x64xbf16> -> tensor<64x512xbf16>
  %none = tile.full %nothing : tensor<32x512xf32>
  %scores = tile.dot %queries, %transposed, %none : tensor<32x64xbf16>, tensor<64x512xbf16>, tensor<32x512xf32> -> tensor<32x512xf32>
  %row = tile.iota %at, 0 : tensor<32x512xi64>
  %col = tile.iota %zero, 1 : tensor<32x512xi64>
  %past = tile.ew<ge> %row, %col : tensor<32x512xi64>, tensor<32x512xi64> -> tensor<32x512xi1>
  %away = tile.ew<sub> %row, %col : tensor<32x512xi64>, tensor<32x512xi64> -> tensor<32x512xi64>
  %wide = arith.index_cast %w : index to i64
  %width = tile.full %wide : tensor<32x512xi64>
  %near = tile.ew<lt> %away, %width : tensor<32x512xi64>, tensor<32x512xi64> -> tensor<32x512xi1>
  %seen = tile.ew<and> %past, %near : tensor<32x512xi1>, tensor<32x512xi1> -> tensor<32x512xi1>
  %weights = tile.ew<select> %seen, %scores, %none : tensor<32x512xi1>, tensor<32x512xf32>, tensor<32x512xf32> -> tensor<32x512xf32>
  %total = tile.reduce<sum> %weights, 1 : tensor<32x512xf32> -> tensor<32xf32>
  %narrow = tile.ew<cast> %weights : tensor<32x512xf32> -> tensor<32x512xbf16>
  %start = tile.full %nothing : tensor<32x64xf32>
  %sum = tile.dot %narrow, %values, %start : tensor<32x512xbf16>, tensor<512x64xbf16>, tensor<32x64xf32> -> tensor<32x64xf32>
  %column = tile.expand %total, 1 : tensor<32xf32> -> tensor<32x1xf32>
  %totals = tile.broadcast %column : tensor<32x1xf32> -> tensor<32x64xf32>
  %less = tile.ew<sub> %sum, %totals : tensor<32x64xf32>, tensor<32x64xf32> -> tensor<32x64xf32>
  tile.store %less, %y[%at, %zero] : tensor<32x64xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:              tile.load %q{{.*}} -> tensor<1x16xbf16>
// CHECK:            scf.for [[COL:%\w+]] = [[FIRST:%\w+]] to [[LAST:%\w+]] step
// CHECK-NEXT:         cpu.matmul {{.*}}, [[COL]]{{\]}} size [32, 64] :
// CHECK:            [[BEFORE:%\w+]] = scf.for {{%\w+}} = [[FIRST]] to [[OPEN:%\w+]] step
// CHECK:              tile.ew<select>
// CHECK:            [[WITHIN:%\w+]] = scf.for {{%\w+}} = [[OPEN]] to [[END:%\w+]] step {{.*}} = [[BEFORE]])
// CHECK-NOT:          tile.ew<select>
// CHECK:            scf.for {{%\w+}} = [[END]] to {{%\w+}} step {{.*}} = [[WITHIN]])
// CHECK:              tile.ew<select>
// CHECK:            cpu.matmul {{.*}} size [32, 64] depth [[FIRST]], [[LAST]] :
