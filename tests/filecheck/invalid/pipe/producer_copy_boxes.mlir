tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: rings are filled by the producer
    pipe.producer_copy_boxes %x[%i, %i] along [0, 1], %ring[%state] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
  // expected: pipe.producer_copy_boxes is a part of pipe.warp_specialize
  pipe.producer_copy_boxes %x[%i, %i] along [0, 1], %ring[%state] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %other = pipe.ring : !pipe.ring<2, 8x16xbf16>
    %state = pipe.pipeline_state %other : !pipe.ring<2, 8x16xbf16> -> !pipe.pipeline_state<2>
    // expected: a pipeline state of 2 slots in a ring of 3
    pipe.producer_copy_boxes %x[%i, %i] along [0, 1], %ring[%state] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<2>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: 3 boxes do not share the rows of tensor<8x16xbf16>
    pipe.producer_copy_boxes %x[%i, %i, %i, %i, %i, %i] along [0, 1], %ring[%state] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
