// RUN: tessera opt %s | filecheck %s
// A tile of one ring, transposed into another one, turn by turn.
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %transposed = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  pipe.warp_specialize 2 producer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    pipe.producer_copy %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.pipeline_state<2>
  } preparer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    pipe.transpose_smem %ring, %transposed[%c] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
    %d = pipe.advance %c : !pipe.pipeline_state<2>
    pipe.transpose_smem %ring, %transposed[%d] {k} : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
  } consumer {
    %t = pipe.pipeline_state %transposed : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
    %tile = pipe.consumer_wait %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<16x8xf8E4M3FN>
    pipe.consumer_release %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
// CHECK-NEXT:     %transposed = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       pipe.producer_copy %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:     } preparer {
// CHECK-NEXT:       %c_1 = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       pipe.transpose_smem %ring, %transposed[%c_1] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:       %d = pipe.advance %c_1 : !pipe.pipeline_state<2>
// CHECK-NEXT:       pipe.transpose_smem %ring, %transposed[%d] {k} : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %t = pipe.pipeline_state %transposed : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %tile = pipe.consumer_wait %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<16x8xf8E4M3FN>
// CHECK-NEXT:       pipe.consumer_release %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
