tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  // expected: a pipeline state of 2 slots in a ring of 3
  %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<2>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  // expected: a ring has at least one slot, got 0
  %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<0>
  tile.return
}
