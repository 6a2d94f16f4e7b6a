// RUN: tessera opt %s -p sink-into-branches | filecheck %s
// Another store comes first, and memory is written in the same order.
tile.func @f(%x: !tile.view<2, f32, global>, %n: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 4], [], [4, 4]] grid [1] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  %some = arith.cmpi slt, %c0, %n : index
  %sums = scf.if %some -> (tensor<4x4xf32>) {
    %twice = tile.ew<add> %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    scf.yield %twice : tensor<4x4xf32>
  } else {
    scf.yield %a : tensor<4x4xf32>
  }
  tile.store %a, %y[%n, %c0] : tensor<4x4xf32>, !tile.view<2, f32, global>
  tile.store %sums, %y[%c0, %c0] : tensor<4x4xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:     %some = arith.cmpi slt, %c0, %n : index
// CHECK-NEXT:     %sums = scf.if %some -> (tensor<4x4xf32>) {
// CHECK-NEXT:       %twice = tile.ew<add> %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK-NEXT:       scf.yield %twice : tensor<4x4xf32>
// CHECK-NEXT:     } else {
// CHECK-NEXT:       scf.yield %a : tensor<4x4xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.store %a, %y[%n, %c0] : tensor<4x4xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.store %sums, %y[%c0, %c0] : tensor<4x4xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
