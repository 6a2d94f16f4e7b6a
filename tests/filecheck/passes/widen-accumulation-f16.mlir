// RUN: tessera opt %s -p widen-accumulation | filecheck %s
// Sums and dots of narrow floats are accumulated in f32 and rounded once; maxima are exact as they are.
tile.func @f(%x: !tile.view<2, f16, global>, %y: !tile.view<2, f16, global>, %z: !tile.view<1, f16, global>) outputs 2 shapes [[16, 16], [16, 16], [16]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f16
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f16, global> -> tensor<16x16xf16>
  %clear = tile.full %nothing : tensor<16x16xf16>
  %product = tile.dot %a, %a, %clear : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf16> -> tensor<16x16xf16>
  %sum = tile.reduce<sum> %a, 1 : tensor<16x16xf16> -> tensor<16xf16>
  %most = tile.reduce<max> %a, 1 : tensor<16x16xf16> -> tensor<16xf16>
  %both = tile.ew<add> %sum, %most : tensor<16xf16>, tensor<16xf16> -> tensor<16xf16>
  tile.store %product, %y[%zero, %zero] : tensor<16x16xf16>, !tile.view<2, f16, global>
  tile.store %both, %z[%zero] : tensor<16xf16>, !tile.view<1, f16, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f16, global>, %y: !tile.view<2, f16, global>, %z: !tile.view<1, f16, global>) outputs 2 shapes [[16, 16], [16, 16], [16]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f16
// CHECK-NEXT:     %a = tile.load %x[%zero, %zero] : !tile.view<2, f16, global> -> tensor<16x16xf16>
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<16x16xf16>
// CHECK-NEXT:     %product = tile.ew<cast> %clear : tensor<16x16xf16> -> tensor<16x16xf32>
// CHECK-NEXT:     %product_1 = tile.dot %a, %a, %product : tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:     %product_2 = tile.ew<cast> %product_1 : tensor<16x16xf32> -> tensor<16x16xf16>
// CHECK-NEXT:     %sum = tile.ew<cast> %a : tensor<16x16xf16> -> tensor<16x16xf32>
// CHECK-NEXT:     %sum_1 = tile.reduce<sum> %sum, 1 : tensor<16x16xf32> -> tensor<16xf32>
// CHECK-NEXT:     %sum_2 = tile.ew<cast> %sum_1 : tensor<16xf32> -> tensor<16xf16>
// CHECK-NEXT:     %most = tile.reduce<max> %a, 1 : tensor<16x16xf16> -> tensor<16xf16>
// CHECK-NEXT:     %both = tile.ew<add> %sum_2, %most : tensor<16xf16>, tensor<16xf16> -> tensor<16xf16>
// CHECK-NEXT:     tile.store %product_2, %y[%zero, %zero] : tensor<16x16xf16>, !tile.view<2, f16, global>
// CHECK-NEXT:     tile.store %both, %z[%zero] : tensor<16xf16>, !tile.view<1, f16, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
