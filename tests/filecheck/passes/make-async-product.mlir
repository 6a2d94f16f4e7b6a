// RUN: tessera opt %s -p make-async{depth=3} | filecheck %s
// Copies of the operands run two iterations ahead. Loads with another padding stay loads.
tile.func @f(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [16, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %k = tile.dim %a, 1 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<16x16xf32>
  %sum = scf.for %i = %zero to %k step %eight iter_args(%acc = %clear) -> (tensor<16x16xf32>) {
    %at = arith.addi %i, %eight : index
    %left = tile.load %a[%zero, %at] : !tile.view<2, f32, global> -> tensor<16x8xf32>
    %transposed = tile.load %b[%zero, %i] : !tile.view<2, f32, global> -> tensor<16x8xf32>
    %right = tile.trans %transposed, [1, 0] : tensor<16x8xf32> -> tensor<8x16xf32>
    %c = tile.dot %left, %right, %acc : tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    %other = tile.load %b[%i, %zero] pad 1.0 : !tile.view<2, f32, global> -> tensor<8x16xf32>
    %next = tile.dot %left, %other, %c : tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [16, 16]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %eight = arith.constant 8 : index
// CHECK-NEXT:     %k = tile.dim %a, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<16x16xf32>
// CHECK-NEXT:     %0 = pipe.ring : !pipe.ring<3, 16x8xf32>
// CHECK-NEXT:     %1 = pipe.ring : !pipe.ring<3, 16x8xf32>
// CHECK-NEXT:     %2 = arith.constant 0 : index
// CHECK-NEXT:     %3 = arith.muli %eight, %2 : index
// CHECK-NEXT:     %4 = arith.addi %zero, %3 : index
// CHECK-NEXT:     %5 = arith.constant 0 : index
// CHECK-NEXT:     %6 = arith.cmpi slt, %4, %k : index
// CHECK-NEXT:     scf.if %6 {
// CHECK-NEXT:       %at = arith.addi %4, %eight : index
// CHECK-NEXT:       pipe.copy %a[%zero, %at], %0[%5] : !tile.view<2, f32, global>, !pipe.ring<3, 16x8xf32>
// CHECK-NEXT:       pipe.copy %b[%zero, %4], %1[%5] : !tile.view<2, f32, global>, !pipe.ring<3, 16x8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     pipe.commit
// CHECK-NEXT:     %7 = arith.constant 1 : index
// CHECK-NEXT:     %8 = arith.muli %eight, %7 : index
// CHECK-NEXT:     %9 = arith.addi %zero, %8 : index
// CHECK-NEXT:     %10 = arith.constant 1 : index
// CHECK-NEXT:     %11 = arith.cmpi slt, %9, %k : index
// CHECK-NEXT:     scf.if %11 {
// CHECK-NEXT:       %at_1 = arith.addi %9, %eight : index
// CHECK-NEXT:       pipe.copy %a[%zero, %at_1], %0[%10] : !tile.view<2, f32, global>, !pipe.ring<3, 16x8xf32>
// CHECK-NEXT:       pipe.copy %b[%zero, %9], %1[%10] : !tile.view<2, f32, global>, !pipe.ring<3, 16x8xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     pipe.commit
// CHECK-NEXT:     %12 = arith.constant 0 : index
// CHECK-NEXT:     %sum, %sum_1 = scf.for %i = %zero to %k step %eight iter_args(%acc = %clear, %13 = %12) -> (tensor<16x16xf32>, index) {
// CHECK-NEXT:       pipe.wait 1
// CHECK-NEXT:       %14 = arith.constant 0 : index
// CHECK-NEXT:       %15 = arith.constant 2 : index
// CHECK-NEXT:       %16 = arith.cmpi eq, %13, %14 : index
// CHECK-NEXT:       %17 = arith.constant 1 : index
// CHECK-NEXT:       %18 = arith.subi %13, %17 : index
// CHECK-NEXT:       %19 = arith.select %16, %15, %18 : index
// CHECK-NEXT:       %20 = arith.muli %eight, %15 : index
// CHECK-NEXT:       %21 = arith.addi %i, %20 : index
// CHECK-NEXT:       %at_2 = arith.addi %21, %eight : index
// CHECK-NEXT:       pipe.copy %a[%zero, %at_2], %0[%19] : !tile.view<2, f32, global>, !pipe.ring<3, 16x8xf32>
// CHECK-NEXT:       pipe.copy %b[%zero, %21], %1[%19] : !tile.view<2, f32, global>, !pipe.ring<3, 16x8xf32>
// CHECK-NEXT:       pipe.commit
// CHECK-NEXT:       %at_3 = arith.addi %i, %eight : index
// CHECK-NEXT:       %left = pipe.get %0[%13] : !pipe.ring<3, 16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %transposed = pipe.get %1[%13] : !pipe.ring<3, 16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:       %right = tile.trans %transposed, [1, 0] : tensor<16x8xf32> -> tensor<8x16xf32>
// CHECK-NEXT:       %c = tile.dot %left, %right, %acc : tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:       %other = tile.load %b[%i, %zero] pad 1.0 : !tile.view<2, f32, global> -> tensor<8x16xf32>
// CHECK-NEXT:       %next = tile.dot %left, %other, %c : tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:       %22 = arith.constant 2 : index
// CHECK-NEXT:       %23 = arith.cmpi eq, %13, %22 : index
// CHECK-NEXT:       %24 = arith.constant 1 : index
// CHECK-NEXT:       %25 = arith.addi %13, %24 : index
// CHECK-NEXT:       %26 = arith.constant 0 : index
// CHECK-NEXT:       %27 = arith.select %23, %26, %25 : index
// CHECK-NEXT:       scf.yield %next, %27 : tensor<16x16xf32>, index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.store %sum, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
