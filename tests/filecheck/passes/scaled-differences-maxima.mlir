// RUN: tessera opt %s -p scaled-differences{of_dots=false} | filecheck %s
// Without exponentials below maxima, maxima of multiples are scaled; with of_dots=false, not those of a dot's elements.
tile.func @f(%x: !tile.view<2, f32, global>, %w: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>, %z: !tile.view<1, f32, global>) outputs 2 shapes [[8, 16], [16, 16], [8], [8]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %twos = tile.full %two : tensor<8x16xf32>
  %clear = tile.full %nothing : tensor<8x16xf32>
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
  %b = tile.load %w[%zero, %zero] : !tile.view<2, f32, global> -> tensor<16x16xf32>
  %dot = tile.dot %a, %b, %clear : tensor<8x16xf32>, tensor<16x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %doubled = tile.ew<mul> %a, %twos : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %scaled = tile.ew<mul> %dot, %twos : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %most = tile.reduce<max> %doubled, 1 : tensor<8x16xf32> -> tensor<8xf32>
  %top = tile.reduce<max> %scaled, 1 : tensor<8x16xf32> -> tensor<8xf32>
  tile.store %most, %y[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.store %top, %z[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:      {{%.+}} = tile.reduce<max> %a, 1
// CHECK:      %top = tile.reduce<max> %scaled, 1
