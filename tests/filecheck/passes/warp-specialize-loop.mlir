// RUN: tessera opt %s -p "warp-specialize{consumers=2 depth=3}" | filecheck %s
// A producer copies queries and keys; two consumers multiply, with half of the rows each.
tile.func @f(%q: !tile.view<2, f16, global>, %k: !tile.view<2, f16, global>, %bias: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 16], [N, 16], [16], [M, 8]] grid ["(M + 31)//32"] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %rows = arith.constant 32 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %rows : index
  %n = tile.dim %k, 0 : !tile.view<2, f16, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<32x8xf32>
  %queries = tile.load %q[%row, %zero] : !tile.view<2, f16, global> -> tensor<32x16xf16>
  %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %clear) -> (tensor<32x8xf32>) {
    %keys = tile.load %k[%i, %zero] : !tile.view<2, f16, global> -> tensor<8x16xf16>
    %transposed = tile.trans %keys, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
    %more = tile.dot %queries, %transposed, %acc : tensor<32x16xf16>, tensor<16x8xf16>, tensor<32x8xf32> -> tensor<32x8xf32>
    scf.yield %more : tensor<32x8xf32>
  }
  %b = tile.load %bias[%zero] : !tile.view<1, f32, global> -> tensor<8xf32>
  %line = tile.expand %b, 0 : tensor<8xf32> -> tensor<1x8xf32>
  %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<32x8xf32>
  %result = tile.ew<add> %sum, %all : tensor<32x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  tile.store %result, %y[%row, %zero] : tensor<32x8xf32>, !tile.view<2, f32, global>
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
// CHECK-NEXT:         %sum, %24 = scf.for %i_1 = %zero to %n step %eight iter_args(%acc = %clear, %25 = %23) -> (tensor<16x8xf32>, !pipe.pipeline_state<3>) {
// CHECK-NEXT:           %keys = pipe.consumer_wait %k_ring[%25] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3> -> tensor<8x16xf16>
// CHECK-NEXT:           %transposed = tile.trans %keys, [1, 0] : tensor<8x16xf16> -> tensor<16x8xf16>
// CHECK-NEXT:           %more = tile.dot %queries, %transposed, %acc : tensor<16x16xf16>, tensor<16x8xf16>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:           pipe.consumer_release %k_ring[%25] : !pipe.ring<3, 8x16xf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:           %26 = pipe.advance %25 : !pipe.pipeline_state<3>
// CHECK-NEXT:           scf.yield %more, %26 : tensor<16x8xf32>, !pipe.pipeline_state<3>
// CHECK-NEXT:         }
// CHECK-NEXT:         pipe.consumer_release %q_ring[%22] : !pipe.ring<2, 32x16xf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:         %27 = pipe.advance %22 : !pipe.pipeline_state<2>
// CHECK-NEXT:         %b = tile.load %bias[%zero] : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK-NEXT:         %line = tile.expand %b, 0 : tensor<8xf32> -> tensor<1x8xf32>
// CHECK-NEXT:         %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:         %result = tile.ew<add> %sum, %all : tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
// CHECK-NEXT:         %28 = arith.addi %row_1, %16 : index
// CHECK-NEXT:         tile.store %result, %y[%28, %zero] : tensor<16x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:         scf.yield %27, %24 : !pipe.pipeline_state<2>, !pipe.pipeline_state<3>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
