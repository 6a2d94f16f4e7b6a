// RUN: tessera opt %s -p "warp-specialize{consumers=2 depth=2},insert-wgmma-waits,sink-into-branches,prefetch-epilogue" | filecheck %s
// The bias is loaded before the accumulators are waited for, and so is its offset computed.
tile.func @f(%a: !tile.view<2, f16, global>, %b: !tile.view<2, f16, global>, %bias: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 64], [64, N], [N], [M, N]] grid [4, 3] {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %k = arith.constant 64 : index
  %rows = arith.constant 32 : index
  %columns = arith.constant 8 : index
  %down = tile.program_id 0
  %across = tile.program_id 1
  %row = arith.muli %down, %rows : index
  %column = arith.muli %across, %columns : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<32x8xf32>
  %sum = scf.for %i = %zero to %k step %step iter_args(%acc = %clear) -> (tensor<32x8xf32>) {
    %left = tile.load %a[%row, %i] : !tile.view<2, f16, global> -> tensor<32x16xf16>
    %right = tile.load %b[%i, %column] : !tile.view<2, f16, global> -> tensor<16x8xf16>
    %more = tile.dot %left, %right, %acc : tensor<32x16xf16>, tensor<16x8xf16>, tensor<32x8xf32> -> tensor<32x8xf32>
    scf.yield %more : tensor<32x8xf32>
  }
  %at = arith.addi %column, %zero : index
  %one = tile.load %bias[%at] : !tile.view<1, f32, global> -> tensor<8xf32>
  %line = tile.expand %one, 0 : tensor<8xf32> -> tensor<1x8xf32>
  %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<32x8xf32>
  %result = tile.ew<add> %sum, %all : tensor<32x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  tile.store %result, %y[%row, %column] : tensor<32x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%a: !tile.view<2, f16, global>, %b: !tile.view<2, f16, global>, %bias: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 64], [64, N], [N], [M, N]] grid [4, 3] attributes {persistent} {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %step = arith.constant 16 : index
// CHECK-NEXT:     %k = arith.constant 64 : index
// CHECK-NEXT:     %rows = arith.constant 32 : index
// CHECK-NEXT:     %columns = arith.constant 8 : index
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %a_ring = pipe.ring : !pipe.ring<2, 32x16xf16>
// CHECK-NEXT:     %b_ring = pipe.ring : !pipe.ring<2, 16x8xf16>
// CHECK-NEXT:     %0 = pipe.cta_id
// CHECK-NEXT:     %1 = pipe.cta_count
// CHECK-NEXT:     %2 = pipe.grid_extent 0
// CHECK-NEXT:     %3 = pipe.grid_extent 1
// CHECK-NEXT:     %4 = arith.muli %2, %3 : index
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %5 = pipe.pipeline_state %a_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %6 = pipe.pipeline_state %b_ring : !pipe.ring<2, 16x8xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %7, %8 = scf.for %9 = %0 to %4 step %1 iter_args(%10 = %5, %11 = %6) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:         %12 = arith.remsi %9, %2 {checked} : index
// CHECK-NEXT:         %13 = arith.divsi %9, %2 {checked} : index
// CHECK-NEXT:         %row = arith.muli %12, %rows : index
// CHECK-NEXT:         %column = arith.muli %13, %columns : index
// CHECK-NEXT:         %14, %15 = scf.for %i = %zero to %k step %step iter_args(%16 = %10, %17 = %11) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:           pipe.producer_copy %a[%row, %i], %a_ring[%16] : !tile.view<2, f16, global>, !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %18 = pipe.advance %16 : !pipe.pipeline_state<2>
// CHECK-NEXT:           pipe.producer_copy %b[%i, %column], %b_ring[%17] : !tile.view<2, f16, global>, !pipe.ring<2, 16x8xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %19 = pipe.advance %17 : !pipe.pipeline_state<2>
// CHECK-NEXT:           scf.yield %18, %19 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:         }
// CHECK-NEXT:         scf.yield %14, %15 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:       }
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %20 = pipe.consumer_id
// CHECK-NEXT:       %21 = arith.constant 16 : index
// CHECK-NEXT:       %22 = arith.muli %20, %21 : index
// CHECK-NEXT:       %23 = pipe.pipeline_state %a_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %24 = pipe.pipeline_state %b_ring : !pipe.ring<2, 16x8xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %25, %26 = scf.for %27 = %0 to %4 step %1 iter_args(%28 = %23, %29 = %24) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:         %30 = arith.remsi %27, %2 {checked} : index
// CHECK-NEXT:         %31 = arith.divsi %27, %2 {checked} : index
// CHECK-NEXT:         %row_1 = arith.muli %30, %rows : index
// CHECK-NEXT:         %column_1 = arith.muli %31, %columns : index
// CHECK-NEXT:         %clear = tile.full %nothing : tensor<16x8xf32>
// CHECK-NEXT:         %left = pipe.consumer_wait part %a_ring[%28] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2> -> tensor<16x16xf16>
// CHECK-NEXT:         %right = pipe.consumer_wait %b_ring[%29] : !pipe.ring<2, 16x8xf16>, !pipe.pipeline_state<2> -> tensor<16x8xf16>
// CHECK-NEXT:         %sum = pipe.dot_start %left, %right, %clear : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> !pipe.pending<16x8xf32>
// CHECK-NEXT:         %sum_1 = pipe.advance %28 : !pipe.pipeline_state<2>
// CHECK-NEXT:         %sum_2 = pipe.advance %29 : !pipe.pipeline_state<2>
// CHECK-NEXT:         %sum_3, %sum_4, %sum_5, %sum_6, %sum_7 = scf.for %i_1 = %step to %k step %step iter_args(%acc = %sum, %32 = %sum_1, %33 = %sum_2, %34 = %28, %35 = %29) -> (!pipe.pending<16x8xf32>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:           %left_1 = pipe.consumer_wait part %a_ring[%32] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2> -> tensor<16x16xf16>
// CHECK-NEXT:           %right_1 = pipe.consumer_wait %b_ring[%33] : !pipe.ring<2, 16x8xf16>, !pipe.pipeline_state<2> -> tensor<16x8xf16>
// CHECK-NEXT:           %36 = pipe.dot_start %left_1, %right_1, %acc : tensor<16x16xf16>, tensor<16x8xf16>, !pipe.pending<16x8xf32> -> !pipe.pending<16x8xf32>
// CHECK-NEXT:           pipe.dots_wait 1
// CHECK-NEXT:           pipe.consumer_release %a_ring[%34] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:           pipe.consumer_release %b_ring[%35] : !pipe.ring<2, 16x8xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %37 = pipe.advance %32 : !pipe.pipeline_state<2>
// CHECK-NEXT:           %38 = pipe.advance %33 : !pipe.pipeline_state<2>
// CHECK-NEXT:           scf.yield %36, %37, %38, %32, %33 : !pipe.pending<16x8xf32>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:         }
// CHECK-NEXT:         %at = arith.addi %column_1, %zero : index
// CHECK-NEXT:         %one = tile.load %bias[%at] : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK-NEXT:         %sum_8 = pipe.dot_wait %sum_3 younger 0 : !pipe.pending<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:         pipe.consumer_release %a_ring[%sum_6] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:         pipe.consumer_release %b_ring[%sum_7] : !pipe.ring<2, 16x8xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:         %line = tile.expand %one, 0 : tensor<8xf32> -> tensor<1x8xf32>
// CHECK-NEXT:         %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:         %result = tile.ew<add> %sum_8, %all : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:         %39 = arith.addi %row_1, %22 : index
// CHECK-NEXT:         tile.store %result, %y[%39, %column_1] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:         scf.yield %sum_4, %sum_5 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
