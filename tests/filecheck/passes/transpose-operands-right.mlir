// RUN: tessera opt %s -p transpose-operands | filecheck %s
// The right operand lies across the depth: a preparer transposes it, and consumers read it from another ring.
tile.func @f(%a: !tile.view<2, f8E4M3FN, global>, %b: !tile.view<2, f8E4M3FN, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, 8], [M, 8]] grid ["(M + 15)//16"] attributes {persistent} {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %rows = arith.constant 16 : index
  %k = tile.dim %a, 1 : !tile.view<2, f8E4M3FN, global>
  %nothing = arith.constant 0.000000e+00 : f32
  %a_ring = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  %b_ring = pipe.ring : !pipe.ring<2, 8x8xf8E4M3FN>
  %0 = pipe.cta_id
  %1 = pipe.cta_count
  %2 = pipe.grid_extent 0
  pipe.warp_specialize 2 producer {
    %3 = pipe.pipeline_state %a_ring : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
    %4 = pipe.pipeline_state %b_ring : !pipe.ring<2, 8x8xf8E4M3FN> -> !pipe.pipeline_state<2>
    %5, %6 = scf.for %7 = %0 to %2 step %1 iter_args(%8 = %3, %9 = %4) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
      %row = arith.muli %7, %rows : index
      %10, %11 = scf.for %i = %zero to %k step %eight iter_args(%12 = %8, %13 = %9) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
        pipe.producer_copy %a[%row, %i], %a_ring[%12] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
        %14 = pipe.advance %12 : !pipe.pipeline_state<2>
        pipe.producer_copy %b[%i, %zero], %b_ring[%13] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.pipeline_state<2>
        %15 = pipe.advance %13 : !pipe.pipeline_state<2>
        scf.yield %14, %15 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
      }
      scf.yield %10, %11 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
    }
  } consumer {
    %16 = pipe.consumer_id
    %17 = arith.muli %16, %eight : index
    %18 = pipe.pipeline_state %a_ring : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
    %19 = pipe.pipeline_state %b_ring : !pipe.ring<2, 8x8xf8E4M3FN> -> !pipe.pipeline_state<2>
    %20, %21 = scf.for %22 = %0 to %2 step %1 iter_args(%23 = %18, %24 = %19) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
      %first = arith.muli %22, %rows : index
      %row_1 = arith.addi %first, %17 : index
      %clear = tile.full %nothing : tensor<8x8xf32>
      %sums, %25, %26 = scf.for %i_1 = %zero to %k step %eight iter_args(%27 = %clear, %28 = %23, %29 = %24) -> (tensor<8x8xf32>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
        %left = pipe.consumer_wait part %a_ring[%28] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<8x8xf8E4M3FN>
        %right = pipe.consumer_wait %b_ring[%29] : !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<8x8xf8E4M3FN>
        %30 = tile.dot %left, %right, %27 : tensor<8x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>, tensor<8x8xf32> -> tensor<8x8xf32>
        pipe.consumer_release %a_ring[%28] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
        %31 = pipe.advance %28 : !pipe.pipeline_state<2>
        pipe.consumer_release %b_ring[%29] : !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.pipeline_state<2>
        %32 = pipe.advance %29 : !pipe.pipeline_state<2>
        scf.yield %30, %31, %32 : tensor<8x8xf32>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
      }
      tile.store %sums, %y[%row_1, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
      scf.yield %25, %26 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
    }
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%a: !tile.view<2, f8E4M3FN, global>, %b: !tile.view<2, f8E4M3FN, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, 8], [M, 8]] grid ["(M + 15)//16"] attributes {persistent} {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %eight = arith.constant 8 : index
// CHECK-NEXT:     %rows = arith.constant 16 : index
// CHECK-NEXT:     %k = tile.dim %a, 1 : !tile.view<2, f8E4M3FN, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %a_ring = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
// CHECK-NEXT:     %b_ring = pipe.ring : !pipe.ring<2, 8x8xf8E4M3FN>
// CHECK-NEXT:     %b_ring_transposed = pipe.ring : !pipe.ring<2, 8x8xf8E4M3FN>
// CHECK-NEXT:     %0 = pipe.cta_id
// CHECK-NEXT:     %1 = pipe.cta_count
// CHECK-NEXT:     %2 = pipe.grid_extent 0
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %3 = pipe.pipeline_state %a_ring : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %4 = pipe.pipeline_state %b_ring : !pipe.ring<2, 8x8xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %5, %6 = scf.for %7 = %0 to %2 step %1 iter_args(%8 = %3, %9 = %4) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:         %row = arith.muli %7, %rows : index
// CHECK-NEXT:         %10, %11 = scf.for %i = %zero to %k step %eight iter_args(%12 = %8, %13 = %9) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:           pipe.producer_copy %a[%row, %i], %a_ring[%12] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %14 = pipe.advance %12 : !pipe.pipeline_state<2>
// CHECK-NEXT:           pipe.producer_copy %b[%i, %zero], %b_ring[%13] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %15 = pipe.advance %13 : !pipe.pipeline_state<2>
// CHECK-NEXT:           scf.yield %14, %15 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:         }
// CHECK-NEXT:         scf.yield %10, %11 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:       }
// CHECK-NEXT:     } preparer {
// CHECK-NEXT:       %16 = pipe.pipeline_state %a_ring : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %17 = pipe.pipeline_state %b_ring : !pipe.ring<2, 8x8xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %18, %19 = scf.for %20 = %0 to %2 step %1 iter_args(%21 = %16, %22 = %17) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:         %23, %24 = scf.for %i_1 = %zero to %k step %eight iter_args(%25 = %21, %26 = %22) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:           %27 = pipe.advance %25 : !pipe.pipeline_state<2>
// CHECK-NEXT:           pipe.transpose_smem %b_ring, %b_ring_transposed[%26] : !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %28 = pipe.advance %26 : !pipe.pipeline_state<2>
// CHECK-NEXT:           scf.yield %27, %28 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:         }
// CHECK-NEXT:         scf.yield %23, %24 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:       }
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %29 = pipe.consumer_id
// CHECK-NEXT:       %30 = arith.muli %29, %eight : index
// CHECK-NEXT:       %31 = pipe.pipeline_state %a_ring : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %32 = pipe.pipeline_state %b_ring_transposed : !pipe.ring<2, 8x8xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %33, %34 = scf.for %35 = %0 to %2 step %1 iter_args(%36 = %31, %37 = %32) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:         %first = arith.muli %35, %rows : index
// CHECK-NEXT:         %row_1 = arith.addi %first, %30 : index
// CHECK-NEXT:         %clear = tile.full %nothing : tensor<8x8xf32>
// CHECK-NEXT:         %sums, %38, %39 = scf.for %i_2 = %zero to %k step %eight iter_args(%40 = %clear, %41 = %36, %42 = %37) -> (tensor<8x8xf32>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:           %left = pipe.consumer_wait part %a_ring[%41] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<8x8xf8E4M3FN>
// CHECK-NEXT:           %right = pipe.consumer_wait %b_ring_transposed[%42] : !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<8x8xf8E4M3FN>
// CHECK-NEXT:           %right_1 = tile.trans %right, [1, 0] : tensor<8x8xf8E4M3FN> -> tensor<8x8xf8E4M3FN>
// CHECK-NEXT:           %43 = tile.dot %left, %right_1, %40 : tensor<8x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>, tensor<8x8xf32> -> tensor<8x8xf32>
// CHECK-NEXT:           pipe.consumer_release %a_ring[%41] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %44 = pipe.advance %41 : !pipe.pipeline_state<2>
// CHECK-NEXT:           pipe.consumer_release %b_ring_transposed[%42] : !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %45 = pipe.advance %42 : !pipe.pipeline_state<2>
// CHECK-NEXT:           scf.yield %43, %44, %45 : tensor<8x8xf32>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:         }
// CHECK-NEXT:         tile.store %sums, %y[%row_1, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:         scf.yield %38, %39 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
