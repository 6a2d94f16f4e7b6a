// RUN: tessera opt %s -p early-exit-consumers | filecheck %s
// A consumer stops at the end of its own rows, and drains the stages that are left behind its store.
// CHECK:      consumer
// CHECK:      [[AGENT:%.+]] = pipe.consumer_id
// CHECK:      [[MINE:%.+]] = pipe.consumer_id
// CHECK-NEXT: [[LAST:%.+]] = arith.constant 1 : index
// CHECK-NEXT: [[AFTER:%.+]] = arith.subi [[LAST]], [[MINE]] : index
// CHECK:      scf.for
// CHECK:      pipe.dot_start
// CHECK:      tile.store
// CHECK-NEXT: [[LEFT:%.+]] = scf.for
// CHECK-NEXT: pipe.consumer_wait %k_ring
// CHECK-NEXT: pipe.consumer_release %k_ring
// CHECK-NEXT: pipe.advance
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield {{%.+}}, [[LEFT]]
tile.func @f(%q: !tile.view<2, f16, global>, %k: !tile.view<2, f16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 16], [N, 16], [M, 8]] grid ["(M + 31)//32"] attributes {persistent} {
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
      %behind = arith.addi %row, %rows {tile.rows_end = 1 : i64} : index
      %end = arith.minsi %n, %behind : index
      %11 = scf.for %i = %zero to %end step %eight iter_args(%12 = %9) -> (!pipe.pipeline_state<3>) {
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
      %row = arith.muli %21, %rows : index
      %24 = pipe.consumer_wait part %q_ring[%22] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2> -> tensor<16x16xf16>
      %25 = tile.full %nothing : tensor<16x8xf32>
      %behind = arith.addi %row, %rows {tile.rows_end = 1 : i64} : index
      %end = arith.minsi %n, %behind : index
      %26, %27 = scf.for %i = %zero to %end step %eight iter_args(%28 = %25, %29 = %23) -> (tensor<16x8xf32>, !pipe.pipeline_state<3>) {
        %30 = pipe.consumer_wait %k_ring[%29] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3> -> tensor<8x16xf16>
        %31 = tile.trans %30, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
        %32 = pipe.dot_start %24, %31, %28 : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> !pipe.pending<16x8xf32>
        %33 = pipe.dot_wait %32 younger 0 : !pipe.pending<16x8xf32> -> tensor<16x8xf32>
        pipe.consumer_release %k_ring[%29] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3>
        %34 = pipe.advance %29 : !pipe.pipeline_state<3>
        scf.yield %33, %34 : tensor<16x8xf32>, !pipe.pipeline_state<3>
      }
      pipe.consumer_release %q_ring[%22] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
      %35 = pipe.advance %22 : !pipe.pipeline_state<2>
      %36 = arith.addi %row, %16 : index
      tile.store %26, %y[%36, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
      scf.yield %35, %27 : !pipe.pipeline_state<2>, !pipe.pipeline_state<3>
    }
  }
  tile.return
}
