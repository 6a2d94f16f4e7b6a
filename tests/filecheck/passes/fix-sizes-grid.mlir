// RUN: tessera opt %s -p fix-sizes -f "arg0.size[0] = 100" -f "arg0.size[1] = 48" | filecheck %s
// Sizes that the grid is made of become numbers, and guards; nobody needs the other one.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[M, N], [M]] grid ["(M + 31)//32"] {
  %zero = arith.constant 0 : index
  %rows = arith.constant 32 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %rows : index
  %data = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<32x64xf32>
  %sums = tile.reduce<sum> %data, 1 : tensor<32x64xf32> -> tensor<32xf32>
  tile.store %sums, %y[%row] : tensor<32xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[100, N], [100]] grid [4] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %rows = arith.constant 32 : index
// CHECK-NEXT:     %program = tile.program_id 0
// CHECK-NEXT:     %row = arith.muli %program, %rows : index
// CHECK-NEXT:     %data = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<32x64xf32>
// CHECK-NEXT:     %sums = tile.reduce<sum> %data, 1 : tensor<32x64xf32> -> tensor<32xf32>
// CHECK-NEXT:     tile.store %sums, %y[%row] : tensor<32xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.size[0] = 100
