tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: the producer waits for no tile, and has none to release
    pipe.consumer_release %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %other = pipe.ring : !pipe.ring<2, 8x16xbf16>
    %state = pipe.pipeline_state %other : !pipe.ring<2, 8x16xbf16> -> !pipe.pipeline_state<2>
    // expected: a pipeline state of 2 slots in a ring of 3
    pipe.consumer_release %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<2>
  }
  tile.return
}
