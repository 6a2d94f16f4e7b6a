// RUN: tessera opt %s -p short-forms | filecheck %s
// Where a result is rounded to bf16, the short instructions for functions are exact enough; where it is kept, they are not.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, bf16, global>, %z: !tile.view<1, f32, global>) outputs 2 shapes [[64], [64], [64]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<64xf32>
  %rounded = tile.ew<exp> %a : tensor<64xf32> -> tensor<64xf32>
  %narrow = tile.ew<cast> %rounded : tensor<64xf32> -> tensor<64xbf16>
  %kept = tile.ew<exp> %a : tensor<64xf32> -> tensor<64xf32>
  tile.store %narrow, %y[%zero] : tensor<64xbf16>, !tile.view<1, bf16, global>
  tile.store %kept, %z[%zero] : tensor<64xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, bf16, global>, %z: !tile.view<1, f32, global>) outputs 2 shapes [[64], [64], [64]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<64xf32>
// CHECK-NEXT:     %rounded = tile.ew<exp> %a {approximate} : tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     %narrow = tile.ew<cast> %rounded : tensor<64xf32> -> tensor<64xbf16>
// CHECK-NEXT:     %kept = tile.ew<exp> %a : tensor<64xf32> -> tensor<64xf32>
// CHECK-NEXT:     tile.store %narrow, %y[%zero] : tensor<64xbf16>, !tile.view<1, bf16, global>
// CHECK-NEXT:     tile.store %kept, %z[%zero] : tensor<64xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
