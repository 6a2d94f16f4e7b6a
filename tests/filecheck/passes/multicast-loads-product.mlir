// RUN: tessera opt %s -p "warp-specialize{consumers=2 depth=3 bands=true cluster=2},multicast-loads" | filecheck %s
// Two CTAs have program instances side by side: they multicast the columns of b, and each has rows of a of its own.
tile.func @f(%a: !tile.view<2, f16, global>, %b: !tile.view<2, f16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [M, N]] grid [4, 3] {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %rows = arith.constant 32 : index
  %columns = arith.constant 8 : index
  %down = tile.program_id 0
  %across = tile.program_id 1
  %row = arith.muli %down, %rows : index
  %column = arith.muli %across, %columns : index
  %k = tile.dim %a, 1 : !tile.view<2, f16, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<32x8xf32>
  %sum = scf.for %i = %zero to %k step %step iter_args(%acc = %clear) -> (tensor<32x8xf32>) {
    %left = tile.load %a[%row, %i] : !tile.view<2, f16, global> -> tensor<32x16xf16>
    %right = tile.load %b[%i, %column] : !tile.view<2, f16, global> -> tensor<16x8xf16>
    %more = tile.dot %left, %right, %acc : tensor<32x16xf16>, tensor<16x8xf16>, tensor<32x8xf32> -> tensor<32x8xf32>
    scf.yield %more : tensor<32x8xf32>
  }
  tile.store %sum, %y[%row, %column] : tensor<32x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%a: !tile.view<2, f16, global>, %b: !tile.view<2, f16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [M, N]] grid [4, 3] attributes {persistent, cluster = 2 : i64} {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %step = arith.constant 16 : index
// CHECK-NEXT:     %rows = arith.constant 32 : index
// CHECK-NEXT:     %columns = arith.constant 8 : index
// CHECK-NEXT:     %k = tile.dim %a, 1 : !tile.view<2, f16, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %a_ring = pipe.ring : !pipe.ring<3, 32x16xf16>
// CHECK-NEXT:     %b_ring = pipe.ring multicast : !pipe.ring<3, 16x8xf16>
// CHECK-NEXT:     %0 = pipe.cta_id
// CHECK-NEXT:     %1 = pipe.cta_count
// CHECK-NEXT:     %2 = pipe.grid_extent 0
// CHECK-NEXT:     %3 = pipe.grid_extent 1
// CHECK-NEXT:     %4 = arith.constant 2 : index
// CHECK-NEXT:     %5 = arith.remsi %0, %4 {checked} : index
// CHECK-NEXT:     %6 = arith.divsi %0, %4 {checked} : index
// CHECK-NEXT:     %7 = arith.divsi %1, %4 {checked} : index
// CHECK-NEXT:     %8 = arith.divsi %2, %4 {checked} : index
// CHECK-NEXT:     %9 = arith.muli %8, %3 : index
// CHECK-NEXT:     %10 = arith.constant 2 : index
// CHECK-NEXT:     %11 = arith.muli %10, %3 : index
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %12 = pipe.pipeline_state %a_ring : !pipe.ring<3, 32x16xf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       %13 = pipe.pipeline_state %b_ring : !pipe.ring<3, 16x8xf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       %14, %15 = scf.for %16 = %6 to %9 step %7 iter_args(%17 = %12, %18 = %13) -> (!pipe.pipeline_state<3>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:         %19 = arith.divsi %16, %11 {checked} : index
// CHECK-NEXT:         %20 = arith.muli %19, %10 : index
// CHECK-NEXT:         %21 = arith.remsi %16, %11 {checked} : index
// CHECK-NEXT:         %22 = arith.subi %8, %20 {checked} : index
// CHECK-NEXT:         %23 = arith.minsi %22, %10 : index
// CHECK-NEXT:         %24 = arith.remsi %21, %23 {checked} : index
// CHECK-NEXT:         %25 = arith.addi %20, %24 : index
// CHECK-NEXT:         %26 = arith.divsi %21, %23 {checked} : index
// CHECK-NEXT:         %27 = arith.muli %25, %4 : index
// CHECK-NEXT:         %28 = arith.addi %27, %5 : index
// CHECK-NEXT:         %row = arith.muli %28, %rows : index
// CHECK-NEXT:         %column = arith.muli %26, %columns : index
// CHECK-NEXT:         %29, %30 = scf.for %i = %zero to %k step %step iter_args(%31 = %17, %32 = %18) -> (!pipe.pipeline_state<3>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:           pipe.producer_copy %a[%row, %i], %a_ring[%31] : !tile.view<2, f16, global>, !pipe.ring<3, 32x16xf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:           %33 = pipe.advance %31 : !pipe.pipeline_state<3>
// CHECK-NEXT:           pipe.producer_copy %b[%i, %column], %b_ring[%32] : !tile.view<2, f16, global>, !pipe.ring<3, 16x8xf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:           %34 = pipe.advance %32 : !pipe.pipeline_state<3>
// CHECK-NEXT:           scf.yield %33, %34 : !pipe.pipeline_state<3>, !pipe.pipeline_state<3>
// CHECK-NEXT:         }
// CHECK-NEXT:         scf.yield %29, %30 : !pipe.pipeline_state<3>, !pipe.pipeline_state<3>
// CHECK-NEXT:       }
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %35 = pipe.consumer_id
// CHECK-NEXT:       %36 = arith.constant 16 : index
// CHECK-NEXT:       %37 = arith.muli %35, %36 : index
// CHECK-NEXT:       %38 = pipe.pipeline_state %a_ring : !pipe.ring<3, 32x16xf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       %39 = pipe.pipeline_state %b_ring : !pipe.ring<3, 16x8xf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       %40, %41 = scf.for %42 = %6 to %9 step %7 iter_args(%43 = %38, %44 = %39) -> (!pipe.pipeline_state<3>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:         %45 = arith.divsi %42, %11 {checked} : index
// CHECK-NEXT:         %46 = arith.muli %45, %10 : index
// CHECK-NEXT:         %47 = arith.remsi %42, %11 {checked} : index
// CHECK-NEXT:         %48 = arith.subi %8, %46 {checked} : index
// CHECK-NEXT:         %49 = arith.minsi %48, %10 : index
// CHECK-NEXT:         %50 = arith.remsi %47, %49 {checked} : index
// CHECK-NEXT:         %51 = arith.addi %46, %50 : index
// CHECK-NEXT:         %52 = arith.divsi %47, %49 {checked} : index
// CHECK-NEXT:         %53 = arith.muli %51, %4 : index
// CHECK-NEXT:         %54 = arith.addi %53, %5 : index
// CHECK-NEXT:         %row_1 = arith.muli %54, %rows : index
// CHECK-NEXT:         %column_1 = arith.muli %52, %columns : index
// CHECK-NEXT:         %clear = tile.full %nothing : tensor<16x8xf32>
// CHECK-NEXT:         %sum, %55, %56 = scf.for %i_1 = %zero to %k step %step iter_args(%acc = %clear, %57 = %43, %58 = %44) -> (tensor<16x8xf32>, !pipe.pipeline_state<3>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:           %left = pipe.consumer_wait part %a_ring[%57] : !pipe.ring<3, 32x16xf16>, !pipe.pipeline_state<3> -> tensor<16x16xf16>
// CHECK-NEXT:           %right = pipe.consumer_wait %b_ring[%58] : !pipe.ring<3, 16x8xf16>, !pipe.pipeline_state<3> -> tensor<16x8xf16>
// CHECK-NEXT:           %more = tile.dot %left, %right, %acc : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:           pipe.consumer_release %a_ring[%57] : !pipe.ring<3, 32x16xf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:           %59 = pipe.advance %57 : !pipe.pipeline_state<3>
// CHECK-NEXT:           pipe.consumer_release %b_ring[%58] : !pipe.ring<3, 16x8xf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:           %60 = pipe.advance %58 : !pipe.pipeline_state<3>
// CHECK-NEXT:           scf.yield %more, %59, %60 : tensor<16x8xf32>, !pipe.pipeline_state<3>, !pipe.pipeline_state<3>
// CHECK-NEXT:         }
// CHECK-NEXT:         %61 = arith.addi %row_1, %37 : index
// CHECK-NEXT:         tile.store %sum, %y[%61, %column_1] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:         scf.yield %55, %56 : !pipe.pipeline_state<3>, !pipe.pipeline_state<3>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
