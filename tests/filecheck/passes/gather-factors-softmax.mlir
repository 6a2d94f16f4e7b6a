// RUN: tessera opt %s -p short-forms,gather-factors | filecheck %s
// The factor of scores is taken out of their maximum and their difference: it goes into the exponential's own product.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[8, 64], [8, 64]] grid [1] {
  %zero = arith.constant 0 : index
  %scale = arith.constant 0.125 : f32
  %scales = tile.full %scale : tensor<8x64xf32>
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
  %scores = tile.ew<mul> %a, %scales : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  %most = tile.reduce<max> %scores, 1 : tensor<8x64xf32> -> tensor<8xf32>
  %column = tile.expand %most, 1 : tensor<8xf32> -> tensor<8x1xf32>
  %tops = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x64xf32>
  %below = tile.ew<sub> %scores, %tops : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  %weights = tile.ew<exp> %below : tensor<8x64xf32> -> tensor<8x64xf32>
  %narrow = tile.ew<cast> %weights : tensor<8x64xf32> -> tensor<8x64xbf16>
  tile.store %narrow, %y[%zero, %zero] : tensor<8x64xbf16>, !tile.view<2, bf16, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[8, 64], [8, 64]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %scale = arith.constant 1.250000e-01 : f32
// CHECK-NEXT:     %scales = tile.full %scale : tensor<8x64xf32>
// CHECK-NEXT:     %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
// CHECK-NEXT:     %scores = tile.ew<mul> %a, %scales : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
// CHECK-NEXT:     %0 = tile.reduce<max> %a, 1 : tensor<8x64xf32> -> tensor<8xf32>
// CHECK-NEXT:     %1 = arith.constant 1.250000e-01 : f32
// CHECK-NEXT:     %2 = tile.full %1 : tensor<8xf32>
// CHECK-NEXT:     %most = tile.ew<mul> %0, %2 {multiple} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT:     %column = tile.expand %most, 1 : tensor<8xf32> -> tensor<8x1xf32>
// CHECK-NEXT:     %tops = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x64xf32>
// CHECK-NEXT:     %below = tile.ew<sub> %scores, %tops : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
// CHECK-NEXT:     %weights = tile.ew<exp> %below {approximate} : tensor<8x64xf32> -> tensor<8x64xf32>
// CHECK-NEXT:     %narrow = tile.ew<cast> %weights : tensor<8x64xf32> -> tensor<8x64xbf16>
// CHECK-NEXT:     tile.store %narrow, %y[%zero, %zero] : tensor<8x64xbf16>, !tile.view<2, bf16, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
