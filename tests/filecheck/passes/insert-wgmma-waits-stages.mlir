// RUN: tessera opt %s -p insert-wgmma-waits | filecheck %s
// Both dots of an iteration run while the first is waited for; the second is waited for at the end.
tile.func @f(%q: !tile.view<2, f16, global>, %k: !tile.view<2, f16, global>, %v: !tile.view<2, f16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 16], [N, 16], [N, 16], [M, 16]] grid ["(M + 31)//32"] attributes {persistent} {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %rows = arith.constant 32 : index
  %n = tile.dim %k, 0 : !tile.view<2, f16, global>
  %nothing = arith.constant 0.000000e+00 : f32
  %q_ring = pipe.ring : !pipe.ring<2, 32x16xf16>
  %k_ring = pipe.ring : !pipe.ring<2, 8x16xf16>
  %v_ring = pipe.ring : !pipe.ring<2, 8x16xf16>
  %0 = pipe.cta_id
  %1 = pipe.cta_count
  %2 = pipe.grid_extent 0
  pipe.warp_specialize 2 producer {
    %3 = pipe.pipeline_state %q_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
    %4 = pipe.pipeline_state %k_ring : !pipe.ring<2, 8x16xf16> -> !pipe.pipeline_state<2>
    %5 = pipe.pipeline_state %v_ring : !pipe.ring<2, 8x16xf16> -> !pipe.pipeline_state<2>
    %6, %7, %8 = scf.for %9 = %0 to %2 step %1 iter_args(%10 = %3, %11 = %4, %12 = %5) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
      %row = arith.muli %9, %rows : index
      pipe.producer_copy %q[%row, %zero], %q_ring[%10] : !tile.view<2, f16, global>, !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
      %13 = pipe.advance %10 : !pipe.pipeline_state<2>
      %14, %15 = scf.for %i = %zero to %n step %eight iter_args(%16 = %11, %17 = %12) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
        pipe.producer_copy %k[%i, %zero], %k_ring[%16] : !tile.view<2, f16, global>, !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2>
        %18 = pipe.advance %16 : !pipe.pipeline_state<2>
        %at = arith.subi %i, %eight : index
        pipe.producer_copy %v[%at, %zero], %v_ring[%17] : !tile.view<2, f16, global>, !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2>
        %19 = pipe.advance %17 : !pipe.pipeline_state<2>
        scf.yield %18, %19 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
      }
      scf.yield %13, %14, %15 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
    }
  } consumer {
    %20 = pipe.consumer_id
    %21 = arith.constant 16 : index
    %22 = arith.muli %20, %21 : index
    %23 = pipe.pipeline_state %q_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
    %24 = pipe.pipeline_state %k_ring : !pipe.ring<2, 8x16xf16> -> !pipe.pipeline_state<2>
    %25 = pipe.pipeline_state %v_ring : !pipe.ring<2, 8x16xf16> -> !pipe.pipeline_state<2>
    %26, %27, %28 = scf.for %29 = %0 to %2 step %1 iter_args(%30 = %23, %31 = %24, %32 = %25) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
      %row_1 = arith.muli %29, %rows : index
      %clear = tile.full %nothing : tensor<16x8xf32>
      %none = tile.full %nothing : tensor<16x16xf32>
      %first = tile.ew<cast> %clear : tensor<16x8xf32> -> tensor<16x8xf16>
      %queries = pipe.consumer_wait part %q_ring[%30] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2> -> tensor<16x16xf16>
      %sum, %last, %33, %34 = scf.for %i_1 = %zero to %n step %eight iter_args(%acc = %none, %before = %first, %35 = %31, %36 = %32) -> (tensor<16x16xf32>, tensor<16x8xf16>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
        %keys = pipe.consumer_wait %k_ring[%35] : !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2> -> tensor<8x16xf16>
        %transposed = tile.trans %keys, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
        %scores = tile.dot %queries, %transposed, %clear : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> tensor<16x8xf32>
        pipe.consumer_release %k_ring[%35] : !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2>
        %37 = pipe.advance %35 : !pipe.pipeline_state<2>
        %values = pipe.consumer_wait %v_ring[%36] : !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2> -> tensor<8x16xf16>
        %more = tile.dot %before, %values, %acc : tensor<16x8xf16>, tensor<8x16xf16>, tensor<16x16xf32> -> tensor<16x16xf32>
        pipe.consumer_release %v_ring[%36] : !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2>
        %38 = pipe.advance %36 : !pipe.pipeline_state<2>
        %weights = tile.ew<exp> %scores : tensor<16x8xf32> -> tensor<16x8xf32>
        %next = tile.ew<cast> %weights : tensor<16x8xf32> -> tensor<16x8xf16>
        scf.yield %more, %next, %37, %38 : tensor<16x16xf32>, tensor<16x8xf16>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
      }
      pipe.consumer_release %q_ring[%30] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
      %39 = pipe.advance %30 : !pipe.pipeline_state<2>
      %40 = arith.addi %row_1, %22 : index
      tile.store %sum, %y[%40, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
      scf.yield %39, %33, %34 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
    }
  }
  tile.return
}

// CHECK:     } consumer {
// CHECK-NEXT:       %20 = pipe.consumer_id
// CHECK-NEXT:       %21 = arith.constant 16 : index
// CHECK-NEXT:       %22 = arith.muli %20, %21 : index
// CHECK-NEXT:       %23 = pipe.pipeline_state %q_ring : !pipe.ring<2, 32x16xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %24 = pipe.pipeline_state %k_ring : !pipe.ring<2, 8x16xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %25 = pipe.pipeline_state %v_ring : !pipe.ring<2, 8x16xf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %26, %27, %28 = scf.for %29 = %0 to %2 step %1 iter_args(%30 = %23, %31 = %24, %32 = %25) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:         %row_1 = arith.muli %29, %rows : index
// CHECK-NEXT:         %clear = tile.full %nothing : tensor<16x8xf32>
// CHECK-NEXT:         %none = tile.full %nothing : tensor<16x16xf32>
// CHECK-NEXT:         %first = tile.ew<cast> %clear : tensor<16x8xf32> -> tensor<16x8xf16>
// CHECK-NEXT:         %queries = pipe.consumer_wait part %q_ring[%30] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2> -> tensor<16x16xf16>
// CHECK-NEXT:         %sum, %last, %33, %34 = scf.for %i_1 = %zero to %n step %eight iter_args(%acc = %none, %before = %first, %35 = %31, %36 = %32) -> (tensor<16x16xf32>, tensor<16x8xf16>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>) {
// CHECK-NEXT:           %keys = pipe.consumer_wait %k_ring[%35] : !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2> -> tensor<8x16xf16>
// CHECK-NEXT:           %transposed = tile.trans %keys, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
// CHECK-NEXT:           %37 = pipe.dot_start %queries, %transposed, %clear : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> !pipe.pending<16x8xf32>
// CHECK-NEXT:           %38 = pipe.advance %35 : !pipe.pipeline_state<2>
// CHECK-NEXT:           %values = pipe.consumer_wait %v_ring[%36] : !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2> -> tensor<8x16xf16>
// CHECK-NEXT:           %39 = pipe.dot_start %before, %values, %acc : tensor<16x8xf16>, tensor<8x16xf16>, tensor<16x16xf32> -> !pipe.pending<16x16xf32>
// CHECK-NEXT:           %40 = pipe.advance %36 : !pipe.pipeline_state<2>
// CHECK-NEXT:           %scores = pipe.dot_wait %37 younger 1 : !pipe.pending<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:           pipe.consumer_release %k_ring[%35] : !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:           %weights = tile.ew<exp> %scores : tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:           %next = tile.ew<cast> %weights : tensor<16x8xf32> -> tensor<16x8xf16>
// CHECK-NEXT:           %more = pipe.dot_wait %39 younger 0 : !pipe.pending<16x16xf32> -> tensor<16x16xf32>
// CHECK-NEXT:           pipe.consumer_release %v_ring[%36] : !pipe.ring<2, 8x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:           scf.yield %more, %next, %38, %40 : tensor<16x16xf32>, tensor<16x8xf16>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:         }
// CHECK-NEXT:         pipe.consumer_release %q_ring[%30] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:         %41 = pipe.advance %30 : !pipe.pipeline_state<2>
// CHECK-NEXT:         %42 = arith.addi %row_1, %22 : index
// CHECK-NEXT:         tile.store %sum, %y[%42, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:         scf.yield %41, %33, %34 : !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
