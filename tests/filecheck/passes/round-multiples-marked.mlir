// RUN: tessera opt %s -p round-multiples | filecheck %s
// RUN: tessera opt %s -p round-multiples{contract=false} | filecheck %s --check-prefix=EXACT
// Products without the mark of `mark-multiples` are rounded before they are added; without `contract` all are.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[64], [64]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<64xf32>
  %fused = tile.ew<mul> %a, %a {multiple} : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  %apart = tile.ew<mul> %fused, %a : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  %b = tile.ew<add> %fused, %apart : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  tile.store %b, %y[%zero] : tensor<64xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK-NOT:  multiple
// CHECK:      %fused = tile.ew<mul> %a, %a : tensor<64xf32>
// CHECK-NEXT: %apart = tile.ew<mul> %fused, %a {rounded} : tensor<64xf32>

// EXACT:      %fused = tile.ew<mul> %a, %a {rounded} : tensor<64xf32>
// EXACT-NEXT: %apart = tile.ew<mul> %fused, %a {rounded} : tensor<64xf32>
