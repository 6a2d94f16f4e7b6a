// RUN: tessera opt %s -p sink-into-branches | filecheck %s
// What is stored is made in both branches; the factor, which needs neither, in front of them. The number is still a result.
tile.func @f(%x: !tile.view<2, f32, global>, %n: index, %y: !tile.view<2, f16, global>, %z: !tile.view<2, f32, global>) outputs 2 shapes [[4, 4], [], [4, 4], [4, 4]] grid [1] {
  %c0 = arith.constant 0 : index
  %half = arith.constant 0.5 : f32
  %a = tile.load %x[%c0, %c0] : !tile.view<2, f32, global> -> tensor<4x4xf32>
  %some = arith.cmpi slt, %c0, %n : index
  %sums, %last = scf.if %some -> (tensor<4x4xf32>, index) {
    %twice = tile.ew<add> %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    scf.yield %twice, %n : tensor<4x4xf32>, index
  } else {
    scf.yield %a, %c0 : tensor<4x4xf32>, index
  }
  %factor = tile.full %half : tensor<4x4xf32>
  %scaled = tile.ew<mul> %sums, %factor : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %packed = tile.ew<cast> %scaled : tensor<4x4xf32> -> tensor<4x4xf16>
  tile.store %packed, %y[%c0, %c0] : tensor<4x4xf16>, !tile.view<2, f16, global>
  tile.store %a, %z[%last, %c0] : tensor<4x4xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:     %some = arith.cmpi slt, %c0, %n : index
// CHECK-NEXT:     %factor = tile.full %half : tensor<4x4xf32>
// CHECK-NEXT:     %last = scf.if %some -> (index) {
// CHECK-NEXT:       %twice = tile.ew<add> %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK-NEXT:       %scaled = tile.ew<mul> %twice, %factor : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK-NEXT:       %packed = tile.ew<cast> %scaled : tensor<4x4xf32> -> tensor<4x4xf16>
// CHECK-NEXT:       tile.store %packed, %y[%c0, %c0] : tensor<4x4xf16>, !tile.view<2, f16, global>
// CHECK-NEXT:       scf.yield %n : index
// CHECK-NEXT:     } else {
// CHECK-NEXT:       %scaled_1 = tile.ew<mul> %a, %factor : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK-NEXT:       %packed_1 = tile.ew<cast> %scaled_1 : tensor<4x4xf32> -> tensor<4x4xf16>
// CHECK-NEXT:       tile.store %packed_1, %y[%c0, %c0] : tensor<4x4xf16>, !tile.view<2, f16, global>
// CHECK-NEXT:       scf.yield %c0 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.store %a, %z[%last, %c0] : tensor<4x4xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
