// RUN: tessera opt %s -p insert-wgmma-waits | filecheck %s
// Accumulators stay in flight around the loop; an iteration releases the keys of the one before.
tile.func @f(%q: !tile.view<2, f16, global>, %k: !tile.view<2, f16, global>, %bias: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 16], [N, 16], [16], [M, 8]] grid ["(M + 31)//32"] attributes {persistent} {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %rows = arith.constant 32 : index
  %n = tile.dim %k, 0 : !tile.view<2, f16, global>
  %nothing = arith.constant 0.000000e+00 : f32
  %q_ring = pipe.ring : !pipe.ring<2, 32x16xf16>
  %k_ring = pipe.ring : !pipe.ring<3, 8x16xf16>
  %0 = pipe.cta_id
  %1 = pipe.cta_count
  %2 = pipe.grid_extent 0
  pipe.warp_specialize 2 producer {
    %3 = pipe.pipeline_state %q_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
    %4 = pipe.pipeline_state %k_ring : !pipe.ring<3, 8x16xf16> -> !pipe.pipeline_state<3>
    %5, %6 = scf.for %7 = %0 to %2 step %1 iter_args(%8 = %3, %9 = %4) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<3>) {
      %row = arith.muli %7, %rows : index
      pipe.producer_copy %q[%row, %zero], %q_ring[%8] : !tile.view<2, f16, global>, !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
      %10 = pipe.advance %8 : !pipe.pipeline_state<2>
      %11 = scf.for %i = %zero to %n step %eight iter_args(%12 = %9) -> (!pipe.pipeline_state<3>) {
        pipe.producer_copy %k[%i, %zero], %k_ring[%12] : !tile.view<2, f16, global>, !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3>
        %13 = pipe.advance %12 : !pipe.pipeline_state<3>
        scf.yield %13 : !pipe.pipeline_state<3>
      }
      scf.yield %10, %11 : !pipe.pipeline_state<2>, !pipe.pipeline_state<3>
    }
  } consumer {
    %14 = pipe.consumer_id
    %15 = arith.constant 16 : index
    %16 = arith.muli %14, %15 : index
    %17 = pipe.pipeline_state %q_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
    %18 = pipe.pipeline_state %k_ring : !pipe.ring<3, 8x16xf16> -> !pipe.pipeline_state<3>
    %19, %20 = scf.for %21 = %0 to %2 step %1 iter_args(%22 = %17, %23 = %18) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<3>) {
      %row_1 = arith.muli %21, %rows : index
      %clear = tile.full %nothing : tensor<16x8xf32>
      %queries = pipe.consumer_wait part %q_ring[%22] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2> -> tensor<16x16xf16>
      %sum, %24 = scf.for %i_1 = %zero to %n step %eight iter_args(%acc = %clear, %25 = %23) -> (tensor<16x8xf32>, !pipe.pipeline_state<3>) {
        %keys = pipe.consumer_wait %k_ring[%25] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3> -> tensor<8x16xf16>
        %transposed = tile.trans %keys, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
        %more = tile.dot %queries, %transposed, %acc : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> tensor<16x8xf32>
        pipe.consumer_release %k_ring[%25] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3>
        %26 = pipe.advance %25 : !pipe.pipeline_state<3>
        scf.yield %more, %26 : tensor<16x8xf32>, !pipe.pipeline_state<3>
      }
      pipe.consumer_release %q_ring[%22] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
      %27 = pipe.advance %22 : !pipe.pipeline_state<2>
      %b = tile.load %bias[%zero] : !tile.view<1, f32, global> -> tensor<8xf32>
      %line = tile.expand %b, 0 : tensor<8xf32> -> tensor<1x8xf32>
      %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<16x8xf32>
      %result = tile.ew<add> %sum, %all : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
      %28 = arith.addi %row_1, %16 : index
      tile.store %result, %y[%28, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
      scf.yield %27, %24 : !pipe.pipeline_state<2>, !pipe.pipeline_state<3>
    }
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%q: !tile.view<2, f16, global>, %k: !tile.view<2, f16, global>, %bias: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 16], [N, 16], [16], [M, 8]] grid ["(M + 31)//32"] attributes {persistent} {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %eight = arith.constant 8 : index
// CHECK-NEXT:     %rows = arith.constant 32 : index
// CHECK-NEXT:     %n = tile.dim %k, 0 : !tile.view<2, f16, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %q_ring = pipe.ring : !pipe.ring<2, 32x16xf16>
// CHECK-NEXT:     %k_ring = pipe.ring : !pipe.ring<3, 8x16xf16>
// CHECK-NEXT:     %0 = pipe.cta_id
// CHECK-NEXT:     %1 = pipe.cta_count
// CHECK-NEXT:     %2 = pipe.grid_extent 0
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %3 = pipe.pipeline_state %q_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %4 = pipe.pipeline_state %k_ring : !pipe.ring<3, 8x16xf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       %5, %6 = scf.for %7 = %0 to %2 step %1 iter_args(%8 = %3, %9 = %4) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:         %row = arith.muli %7, %rows : index
// CHECK-NEXT:         pipe.producer_copy %q[%row, %zero], %q_ring[%8] : !tile.view<2, f16, global>, !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:         %10 = pipe.advance %8 : !pipe.pipeline_state<2>
// CHECK-NEXT:         %11 = scf.for %i = %zero to %n step %eight iter_args(%12 = %9) -> (!pipe.pipeline_state<3>) {
// CHECK-NEXT:           pipe.producer_copy %k[%i, %zero], %k_ring[%12] : !tile.view<2, f16, global>, !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:           %13 = pipe.advance %12 : !pipe.pipeline_state<3>
// CHECK-NEXT:           scf.yield %13 : !pipe.pipeline_state<3>
// CHECK-NEXT:         }
// CHECK-NEXT:         scf.yield %10, %11 : !pipe.pipeline_state<2>, !pipe.pipeline_state<3>
// CHECK-NEXT:       }
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %14 = pipe.consumer_id
// CHECK-NEXT:       %15 = arith.constant 16 : index
// CHECK-NEXT:       %16 = arith.muli %14, %15 : index
// CHECK-NEXT:       %17 = pipe.pipeline_state %q_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %18 = pipe.pipeline_state %k_ring : !pipe.ring<3, 8x16xf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       %19, %20 = scf.for %21 = %0 to %2 step %1 iter_args(%22 = %17, %23 = %18) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:         %row_1 = arith.muli %21, %rows : index
// CHECK-NEXT:         %clear = tile.full %nothing : tensor<16x8xf32>
// CHECK-NEXT:         %queries = pipe.consumer_wait part %q_ring[%22] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2> -> tensor<16x16xf16>
// CHECK-NEXT:         %sum = arith.cmpi slt, %zero, %n : index
// CHECK-NEXT:         %sum_1, %sum_2 = scf.if %sum -> (tensor<16x8xf32>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:           %keys = pipe.consumer_wait %k_ring[%23] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3> -> tensor<8x16xf16>
// CHECK-NEXT:           %transposed = tile.trans %keys, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
// CHECK-NEXT:           %24 = pipe.dot_start %queries, %transposed, %clear : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> !pipe.pending<16x8xf32>
// CHECK-NEXT:           %25 = pipe.advance %23 : !pipe.pipeline_state<3>
// CHECK-NEXT:           %26, %27, %28 = scf.for %i_1 = %eight to %n step %eight iter_args(%acc = %24, %29 = %25, %30 = %23) -> (!pipe.pending<16x8xf32>, !pipe.pipeline_state<3>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:             %keys_1 = pipe.consumer_wait %k_ring[%29] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3> -> tensor<8x16xf16>
// CHECK-NEXT:             %transposed_1 = tile.trans %keys_1, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
// CHECK-NEXT:             %31 = pipe.dot_start %queries, %transposed_1, %acc : tensor<16x16xf16>, tensor<16x8xf16>, !pipe.pending<16x8xf32> -> !pipe.pending<16x8xf32>
// CHECK-NEXT:             pipe.dots_wait 1
// CHECK-NEXT:             pipe.consumer_release %k_ring[%30] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:             %32 = pipe.advance %29 : !pipe.pipeline_state<3>
// CHECK-NEXT:             scf.yield %31, %32, %29 : !pipe.pending<16x8xf32>, !pipe.pipeline_state<3>, !pipe.pipeline_state<3>
// CHECK-NEXT:           }
// CHECK-NEXT:           %33 = pipe.dot_wait %26 younger 0 : !pipe.pending<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:           pipe.consumer_release %k_ring[%28] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:           scf.yield %33, %27 : tensor<16x8xf32>, !pipe.pipeline_state<3>
// CHECK-NEXT:         } else {
// CHECK-NEXT:           scf.yield %clear, %23 : tensor<16x8xf32>, !pipe.pipeline_state<3>
// CHECK-NEXT:         }
// CHECK-NEXT:         pipe.consumer_release %q_ring[%22] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:         %34 = pipe.advance %22 : !pipe.pipeline_state<2>
// CHECK-NEXT:         %b = tile.load %bias[%zero] : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK-NEXT:         %line = tile.expand %b, 0 : tensor<8xf32> -> tensor<1x8xf32>
// CHECK-NEXT:         %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:         %result = tile.ew<add> %sum_1, %all : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:         %35 = arith.addi %row_1, %16 : index
// CHECK-NEXT:         tile.store %result, %y[%35, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:         scf.yield %34, %sum_2 : !pipe.pipeline_state<2>, !pipe.pipeline_state<3>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
