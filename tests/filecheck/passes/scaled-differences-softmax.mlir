// RUN: tessera opt %s -p scaled-differences | filecheck %s
// Of exp(c · x − max(c · x)) the difference comes first: one factor, c · log2 e, and a power of two.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[8, 64], [8, 64]] grid [1] {
  %zero = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %twos = tile.full %two : tensor<8x64xf32>
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
  %doubled = tile.ew<mul> %a, %twos : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  %most = tile.reduce<max> %doubled, 1 : tensor<8x64xf32> -> tensor<8xf32>
  %column = tile.expand %most, 1 : tensor<8xf32> -> tensor<8x1xf32>
  %tops = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x64xf32>
  %less = tile.ew<sub> %doubled, %tops : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  %weights = tile.ew<exp> %less : tensor<8x64xf32> -> tensor<8x64xf32>
  tile.store %weights, %y[%zero, %zero] : tensor<8x64xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:      %a = tile.load %x
// CHECK:      [[TOP:%.+]] = tile.reduce<max> %a, 1
// CHECK:      [[LESS:%.+]] = tile.ew<sub> %a, {{%.+}} : tensor<8x64xf32>
// CHECK:      arith.constant 2.885390e+00 : f32
// CHECK:      [[POWER:%.+]] = tile.ew<mul> [[LESS]], {{%.+}} : tensor<8x64xf32>
// CHECK-NEXT: tile.ew<exp2> [[POWER]]
// CHECK-NOT:  tile.ew<exp>
