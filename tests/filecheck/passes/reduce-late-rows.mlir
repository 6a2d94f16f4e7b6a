// RUN: tessera opt %s -p reduce-late | filecheck %s
// What the loop folds is folded behind it: until then each element has a total.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 256], [4, 1]] grid [1] {
  %zero = arith.constant 0 : index
  %end = arith.constant 256 : index
  %step = arith.constant 64 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<4x1xf32>
  %total = scf.for %at = %zero to %end step %step iter_args(%before = %clear) -> (tensor<4x1xf32>) {
    %part = tile.load %x[%zero, %at] : !tile.view<2, f32, global> -> tensor<4x64xf32>
    %sums = tile.reduce<sum> %part, 1 : tensor<4x64xf32> -> tensor<4xf32>
    %column = tile.expand %sums, 1 : tensor<4xf32> -> tensor<4x1xf32>
    %after = tile.ew<add> %before, %column : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
    scf.yield %after : tensor<4x1xf32>
  }
  tile.store %total, %y[%zero, %zero] : tensor<4x1xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 256], [4, 1]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %end = arith.constant 256 : index
// CHECK-NEXT:     %step = arith.constant 64 : index
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<4x1xf32>
// CHECK-NEXT:     %0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %1 = tile.full %0 : tensor<4x64xf32>
// CHECK-NEXT:     %total = scf.for %at = %zero to %end step %step iter_args(%before = %1) -> (tensor<4x64xf32>) {
// CHECK-NEXT:       %part = tile.load %x[%zero, %at] : !tile.view<2, f32, global> -> tensor<4x64xf32>
// CHECK-NEXT:       %2 = tile.ew<add> %before, %part : tensor<4x64xf32>, tensor<4x64xf32> -> tensor<4x64xf32>
// CHECK-NEXT:       scf.yield %2 : tensor<4x64xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %3 = tile.reduce<sum> %total, 1 : tensor<4x64xf32> -> tensor<4xf32>
// CHECK-NEXT:     %4 = tile.expand %3, 1 : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:     %total_1 = tile.ew<add> %clear, %4 : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
// CHECK-NEXT:     tile.store %total_1, %y[%zero, %zero] : tensor<4x1xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
