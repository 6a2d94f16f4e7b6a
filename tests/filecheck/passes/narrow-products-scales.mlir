// RUN: tessera opt %s -p narrow-products | filecheck %s
// A product of whole numbers of 8 bits and of bf16 is one of bf16; the other, of two bf16, may be too small for f32.
tile.func @f(%w: !tile.view<2, i8, global>, %s: !tile.view<2, bf16, global>, %x: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[32, 16], [32, 16], [16, 32], [16, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.000000e+00 : f32
  %clear = tile.full %nothing : tensor<16x16xf32>
  %a = tile.load %x[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<16x32xbf16>
  %b = tile.load %w[%zero, %zero] : !tile.view<2, i8, global> -> tensor<32x16xi8>
  %c = tile.load %s[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<1x16xbf16>
  %d = tile.load %s[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<32x16xbf16>
  %wide = tile.ew<cast> %b : tensor<32x16xi8> -> tensor<32x16xf32>
  %scale = tile.ew<cast> %c : tensor<1x16xbf16> -> tensor<1x16xf32>
  %scales = tile.broadcast %scale : tensor<1x16xf32> -> tensor<32x16xf32>
  %scaled = tile.ew<mul> %wide, %scales : tensor<32x16xf32>, tensor<32x16xf32> -> tensor<32x16xf32>
  %first = tile.ew<cast> %scaled : tensor<32x16xf32> -> tensor<32x16xbf16>
  %one = tile.dot %a, %first, %clear : tensor<16x32xbf16>, tensor<32x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
  %other = tile.ew<cast> %d : tensor<32x16xbf16> -> tensor<32x16xf32>
  %twice = tile.ew<mul> %other, %scales : tensor<32x16xf32>, tensor<32x16xf32> -> tensor<32x16xf32>
  %second = tile.ew<cast> %twice : tensor<32x16xf32> -> tensor<32x16xbf16>
  %both = tile.dot %a, %second, %one : tensor<16x32xbf16>, tensor<32x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %both, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%w: !tile.view<2, i8, global>, %s: !tile.view<2, bf16, global>, %x: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[32, 16], [32, 16], [16, 32], [16, 16]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<16x16xf32>
// CHECK-NEXT:     %a = tile.load %x[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<16x32xbf16>
// CHECK-NEXT:     %b = tile.load %w[%zero, %zero] : !tile.view<2, i8, global> -> tensor<32x16xi8>
// CHECK-NEXT:     %c = tile.load %s[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<1x16xbf16>
// CHECK-NEXT:     %d = tile.load %s[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<32x16xbf16>
// CHECK-NEXT:     %scale = tile.ew<cast> %c : tensor<1x16xbf16> -> tensor<1x16xf32>
// CHECK-NEXT:     %scales = tile.broadcast %scale : tensor<1x16xf32> -> tensor<32x16xf32>
// CHECK-NEXT:     %first = tile.ew<cast> %b : tensor<32x16xi8> -> tensor<32x16xbf16>
// CHECK-NEXT:     %scales_1 = tile.broadcast %c : tensor<1x16xbf16> -> tensor<32x16xbf16>
// CHECK-NEXT:     %first_1 = tile.ew<mul> %first, %scales_1 : tensor<32x16xbf16>, tensor<32x16xbf16> -> tensor<32x16xbf16>
// CHECK-NEXT:     %one = tile.dot %a, %first_1, %clear : tensor<16x32xbf16>, tensor<32x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:     %other = tile.ew<cast> %d : tensor<32x16xbf16> -> tensor<32x16xf32>
// CHECK-NEXT:     %twice = tile.ew<mul> %other, %scales : tensor<32x16xf32>, tensor<32x16xf32> -> tensor<32x16xf32>
// CHECK-NEXT:     %second = tile.ew<cast> %twice : tensor<32x16xf32> -> tensor<32x16xbf16>
// CHECK-NEXT:     %both = tile.dot %a, %second, %one : tensor<16x32xbf16>, tensor<32x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:     tile.store %both, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
