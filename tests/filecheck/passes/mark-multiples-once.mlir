// RUN: tessera opt %s -p mark-multiples | filecheck %s
// A product that one op uses may be rounded with the sum it goes into, and so may one by a power of two; others may not.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[64], [64]] grid [1] {
  %zero = arith.constant 0 : index
  %third = arith.constant 0.3 : f32
  %half = arith.constant 0.5 : f32
  %thirds = tile.full %third : tensor<64xf32>
  %halves = tile.full %half : tensor<64xf32>
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<64xf32>
  %once = tile.ew<mul> %a, %thirds : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  %twice = tile.ew<mul> %once, %a : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  %exact = tile.ew<mul> %twice, %halves : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  %b = tile.ew<add> %twice, %exact : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  %c = tile.ew<sub> %b, %exact : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  tile.store %c, %y[%zero] : tensor<64xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[64], [64]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %third = arith.constant 3.000000e-01 : f32
// CHECK-NEXT:     %half = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:     %thirds = tile.full %third : tensor<64xf32>
// CHECK-NEXT:     %halves = tile.full %half : tensor<64xf32>
// CHECK-NEXT:     %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<64xf32>
// CHECK-NEXT:     %once = tile.ew<mul> %a, %thirds {multiple} : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     %twice = tile.ew<mul> %once, %a : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     %exact = tile.ew<mul> %twice, %halves {multiple} : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     %b = tile.ew<add> %twice, %exact : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     %c = tile.ew<sub> %b, %exact : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     tile.store %c, %y[%zero] : tensor<64xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
