// RUN: tessera opt %s -p powers-of-two | filecheck %s
// An exponential that need not be exact is a power of two, whose factor joins the one in front; exact ones stay.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[64], [64]] grid [1] {
  %zero = arith.constant 0 : index
  %scale = arith.constant 0.125 : f32
  %scales = tile.full %scale : tensor<64xf32>
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<64xf32>
  %b = tile.ew<mul> %a, %scales : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  %short = tile.ew<exp> %b {approximate} : tensor<64xf32> -> tensor<64xf32>
  %long = tile.ew<exp> %a : tensor<64xf32> -> tensor<64xf32>
  %both = tile.ew<add> %short, %long : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  tile.store %both, %y[%zero] : tensor<64xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[64], [64]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<64xf32>
// CHECK-NEXT:     %0 = arith.constant 0.180336878 : f32
// CHECK-NEXT:     %1 = tile.full %0 : tensor<64xf32>
// CHECK-NEXT:     %2 = tile.ew<mul> %a, %1 : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     %short = tile.ew<exp2> %2 {approximate} : tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     %long = tile.ew<exp> %a : tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     %both = tile.ew<add> %short, %long : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     tile.store %both, %y[%zero] : tensor<64xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
