// RUN: tessera opt %s -p scale-maxima | filecheck %s
// The maximum of positive multiples is a multiple of the maximum, also behind a mask; that of negative ones is not.
tile.func @f(%x: !tile.view<2, f32, global>, %m: !tile.view<2, i1, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[8, 64], [8, 64], [8]] grid [1] {
  %zero = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %less = arith.constant -2.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %twos = tile.full %two : tensor<8x64xf32>
  %lesser = tile.full %less : tensor<8x64xf32>
  %nothing = tile.full %least : tensor<8x64xf32>
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
  %mask = tile.load %m[%zero, %zero] : !tile.view<2, i1, global> -> tensor<8x64xi1>
  %doubled = tile.ew<mul> %a, %twos : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  %chosen = tile.ew<select> %mask, %doubled, %nothing : tensor<8x64xi1>, tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  %most = tile.reduce<max> %chosen, 1 : tensor<8x64xf32> -> tensor<8xf32>
  %turned = tile.ew<mul> %a, %lesser : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  %other = tile.reduce<max> %turned, 1 : tensor<8x64xf32> -> tensor<8xf32>
  %both = tile.ew<add> %most, %other : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  tile.store %both, %y[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:      [[CHOSEN:%.+]] = tile.ew<select> %mask, %a, %nothing
// CHECK:      [[TOP:%.+]] = tile.reduce<max> [[CHOSEN]], 1
// CHECK-NEXT: [[SCALE:%.+]] = tile.full %two : tensor<8xf32>
// CHECK-NEXT: [[MOST:%.+]] = tile.ew<mul> [[TOP]], [[SCALE]]
// CHECK:      %other = tile.reduce<max> %turned, 1
// CHECK-NEXT: tile.ew<add> [[MOST]], %other
