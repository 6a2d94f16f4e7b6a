// RUN: tessera opt %s -p reduce-early | filecheck %s
// A reduction goes right behind what it reduces: the wide tile need not be kept for it.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[8, 64], [8]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
  %b = tile.load %x[%eight, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
  %first = tile.reduce<sum> %a, 1 : tensor<8x64xf32> -> tensor<8xf32>
  %second = tile.reduce<sum> %b, 1 : tensor<8x64xf32> -> tensor<8xf32>
  %both = tile.ew<add> %first, %second : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  tile.store %both, %y[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:      %a = tile.load
// CHECK-NEXT: %first = tile.reduce<sum> %a
// CHECK-NEXT: %b = tile.load
// CHECK-NEXT: %second = tile.reduce<sum> %b
