// RUN: tessera opt %s -p spread-rows{rows=8} | filecheck %s
// A program instance of 32 rows becomes four of 8 each: the grid grows, and tiles shrink.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 64], [M, 64]] grid ["(M + 31)//32"] {
  %zero = arith.constant 0 : index
  %rows = arith.constant 32 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %rows : index
  %a = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<32x64xf32>
  %sum = tile.reduce<sum> %a, 1 : tensor<32x64xf32> -> tensor<32xf32>
  %column = tile.expand %sum, 1 : tensor<32xf32> -> tensor<32x1xf32>
  %sums = tile.broadcast %column : tensor<32x1xf32> -> tensor<32x64xf32>
  %b = tile.ew<div> %a, %sums : tensor<32x64xf32>, tensor<32x64xf32> -> tensor<32x64xf32>
  tile.store %b, %y[%row, %zero] : tensor<32x64xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 64], [M, 64]] grid ["(M + 31)//32", 4] {
// CHECK-NEXT:     %0 = tile.program_id 1
// CHECK-NEXT:     %1 = arith.constant 8 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %rows = arith.constant 32 : index
// CHECK-NEXT:     %program = tile.program_id 0
// CHECK-NEXT:     %row = arith.muli %program, %rows : index
// CHECK-NEXT:     %3 = arith.addi %row, %2 : index
// CHECK-NEXT:     %a = tile.load %x[%3, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
// CHECK-NEXT:     %sum = tile.reduce<sum> %a, 1 : tensor<8x64xf32> -> tensor<8xf32>
// CHECK-NEXT:     %column = tile.expand %sum, 1 : tensor<8xf32> -> tensor<8x1xf32>
// CHECK-NEXT:     %sums = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x64xf32>
// CHECK-NEXT:     %b = tile.ew<div> %a, %sums : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
// CHECK-NEXT:     %4 = arith.addi %row, %2 : index
// CHECK-NEXT:     tile.store %b, %y[%4, %zero] : tensor<8x64xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
