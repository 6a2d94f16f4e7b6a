tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %transposed = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  pipe.warp_specialize 2 producer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    // expected: tiles are transposed by the partition `preparer`
    pipe.transpose_smem %ring, %transposed[%c] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %transposed = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  pipe.warp_specialize 2 producer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    pipe.producer_copy %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.pipeline_state<2>
  } preparer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    // expected: tensor<8x16xf8E4M3FN> transposed is not tensor<8x16xf8E4M3FN>
    pipe.transpose_smem %ring, %ring[%c] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.pipeline_state<2>
  } consumer {
    %t = pipe.pipeline_state %transposed : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
    %tile = pipe.consumer_wait %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<16x8xf8E4M3FN>
    pipe.consumer_release %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %transposed = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  %other = pipe.ring : !pipe.ring<3, 16x8xf8E4M3FN>
  pipe.warp_specialize 2 producer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    pipe.producer_copy %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.pipeline_state<2>
  } preparer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    // expected: a pipeline state of 2 slots in a ring of 3
    pipe.transpose_smem %ring, %other[%c] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<3, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
  } consumer {
    %t = pipe.pipeline_state %transposed : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
    %tile = pipe.consumer_wait %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<16x8xf8E4M3FN>
    pipe.consumer_release %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %transposed = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  pipe.warp_specialize 2 producer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    pipe.producer_copy %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.pipeline_state<2>
  } preparer {
    %c = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.pipeline_state<2>
    // expected: rings are filled by the producer
    pipe.producer_copy %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.pipeline_state<2>
  } consumer {
    %t = pipe.pipeline_state %transposed : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.pipeline_state<2>
    %tile = pipe.consumer_wait %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2> -> tensor<16x8xf8E4M3FN>
    pipe.consumer_release %transposed[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.pipeline_state<2>
  }
  tile.return
}
