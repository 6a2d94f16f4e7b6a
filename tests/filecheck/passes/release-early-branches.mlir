// RUN: tessera opt %s -p release-early | filecheck %s
// A tile that an instance waits for once is released behind the last loop that uses it, or at once where none does.
// CHECK:      consumer
// CHECK:      scf.if
// CHECK:      scf.for
// CHECK:      pipe.dot_start
// CHECK:      }
// CHECK-NEXT: pipe.consumer_release %q_ring
// CHECK-NEXT: tile.store
// CHECK:      } else {
// CHECK-NEXT: pipe.consumer_release %q_ring
// CHECK-NEXT: tile.store
// CHECK:      }
// CHECK-NEXT: pipe.advance
// CHECK-NOT:  pipe.consumer_release %q_ring
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
      %behind = arith.addi %row, %rows : index
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
      %behind = arith.addi %row, %rows : index
      %end = arith.minsi %n, %behind : index
      %some = arith.cmpi slt, %zero, %end : index
      %36 = arith.addi %row, %16 : index
      %27 = scf.if %some -> (!pipe.pipeline_state<3>) {
        %26, %28 = scf.for %i = %zero to %end step %eight iter_args(%29 = %25, %30 = %23) -> (tensor<16x8xf32>, !pipe.pipeline_state<3>) {
          %31 = pipe.consumer_wait %k_ring[%30] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3> -> tensor<8x16xf16>
          %32 = tile.trans %31, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
          %33 = pipe.dot_start %24, %32, %29 : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> !pipe.pending<16x8xf32>
          %34 = pipe.dot_wait %33 younger 0 : !pipe.pending<16x8xf32> -> tensor<16x8xf32>
          pipe.consumer_release %k_ring[%30] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3>
          %37 = pipe.advance %30 : !pipe.pipeline_state<3>
          scf.yield %34, %37 : tensor<16x8xf32>, !pipe.pipeline_state<3>
        }
        tile.store %26, %y[%36, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
        scf.yield %28 : !pipe.pipeline_state<3>
      } else {
        tile.store %25, %y[%36, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
        scf.yield %23 : !pipe.pipeline_state<3>
      }
      pipe.consumer_release %q_ring[%22] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
      %35 = pipe.advance %22 : !pipe.pipeline_state<2>
      scf.yield %35, %27 : !pipe.pipeline_state<2>, !pipe.pipeline_state<3>
    }
  }
  tile.return
}
