tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    // expected: the agent that copies takes nothing, and has nothing to release
    pipe.release %ring[%turn] : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %other = pipe.ring : !pipe.ring<2, 8x16xbf16>
    %turn = pipe.cursor %other : !pipe.ring<2, 8x16xbf16> -> !pipe.cursor<2>
    // expected: a cursor of 2 slots in a ring of 3
    pipe.release %ring[%turn] : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<2>
  }
  tile.return
}
