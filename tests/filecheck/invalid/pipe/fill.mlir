tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    // expected: rings are filled by the agent that copies
    pipe.fill %x[%i, %i], %ring[%turn] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
  // expected: pipe.fill is a part of a role
  pipe.fill %x[%i, %i], %ring[%turn] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %other = pipe.ring : !pipe.ring<2, 8x16xbf16>
    %turn = pipe.cursor %other : !pipe.ring<2, 8x16xbf16> -> !pipe.cursor<2>
    // expected: a cursor of 2 slots in a ring of 3
    pipe.fill %x[%i, %i], %ring[%turn] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.cursor<2>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    // expected: 1 offsets into !tile.view<2, bf16, global>, for slots of tensor<8x16xbf16>
    pipe.fill %x[%i], %ring[%turn] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 16xbf16>
  pipe.roles 2 copies {
    %turn = pipe.cursor %ring : !pipe.ring<3, 16xbf16> -> !pipe.cursor<3>
    // expected: 2 offsets into !tile.view<2, bf16, global>, for slots of tensor<16xbf16>
    pipe.fill %x[%i, %i], %ring[%turn] : !tile.view<2, bf16, global>, !pipe.ring<3, 16xbf16>, !pipe.cursor<3>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xf16>
  pipe.roles 2 copies {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xf16> -> !pipe.cursor<3>
    // expected: the view holds bf16, the ring f16
    pipe.fill %x[%i, %i], %ring[%turn] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xf16>, !pipe.cursor<3>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
