// RUN: tessera opt %s -p partition-rows{rows=4} | filecheck %s
// Four rows at a time; what all rows share is loaded once.
tile.func @f(%x: !tile.view<2, f32, global>, %w: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 8], [8], [M, 8]] grid ["(M + 15)//16"] {
  %zero = arith.constant 0 : index
  %sixteen = arith.constant 16 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %sixteen : index
  %a = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<16x8xf32>
  %weights = tile.load %w[%zero] : !tile.view<1, f32, global> -> tensor<8xf32>
  %sum = tile.reduce<sum> %a, 1 : tensor<16x8xf32> -> tensor<16xf32>
  %column = tile.expand %sum, 1 : tensor<16xf32> -> tensor<16x1xf32>
  %sums = tile.broadcast %column : tensor<16x1xf32> -> tensor<16x8xf32>
  %b = tile.ew<div> %a, %sums : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  %line = tile.expand %weights, 0 : tensor<8xf32> -> tensor<1x8xf32>
  %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<16x8xf32>
  %c = tile.ew<mul> %b, %all : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
  tile.store %c, %y[%row, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %w: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 8], [8], [M, 8]] grid ["(M + 15)//16"] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %sixteen = arith.constant 16 : index
// CHECK-NEXT:     %program = tile.program_id 0
// CHECK-NEXT:     %row = arith.muli %program, %sixteen : index
// CHECK-NEXT:     %weights = tile.load %w[%zero] : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK-NEXT:     %line = tile.expand %weights, 0 : tensor<8xf32> -> tensor<1x8xf32>
// CHECK-NEXT:     %0 = arith.constant 0 : index
// CHECK-NEXT:     %1 = arith.constant 16 : index
// CHECK-NEXT:     %2 = arith.constant 4 : index
// CHECK-NEXT:     scf.for %3 = %0 to %1 step %2 {
// CHECK-NEXT:       %4 = arith.addi %row, %3 : index
// CHECK-NEXT:       %a = tile.load %x[%4, %zero] : !tile.view<2, f32, global> -> tensor<4x8xf32>
// CHECK-NEXT:       %sum = tile.reduce<sum> %a, 1 : tensor<4x8xf32> -> tensor<4xf32>
// CHECK-NEXT:       %column = tile.expand %sum, 1 : tensor<4xf32> -> tensor<4x1xf32>
// CHECK-NEXT:       %sums = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %b = tile.ew<div> %a, %sums : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %c = tile.ew<mul> %b, %all : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT:       %5 = arith.addi %row, %3 : index
// CHECK-NEXT:       tile.store %c, %y[%5, %zero] : tensor<4x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
