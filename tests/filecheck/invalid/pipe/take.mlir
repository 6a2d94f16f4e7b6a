tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    // expected: the agent that copies does not look at what it has copied
    %t = pipe.take %ring[%turn] : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3> -> tensor<8x16xbf16>
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
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    // expected: a ring of tensor<8x16xbf16> does not hold tensor<4x16xbf16>
    %t = pipe.take %ring[%turn] : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3> -> tensor<4x16xbf16>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    // expected: 2 of tensor<8x16xbf16> are not tensor<8x16xbf16>
    %t = pipe.take part %ring[%turn] : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3> -> tensor<8x16xbf16>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 3 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    // expected: 3 of tensor<2x16xbf16> are not tensor<8x16xbf16>
    %t = pipe.take part %ring[%turn] : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3> -> tensor<2x16xbf16>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, bf16>
  pipe.roles 1 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %turn = pipe.cursor %ring : !pipe.ring<3, bf16> -> !pipe.cursor<3>
    // expected: 1 of tensor<bf16> are not tensor<bf16>
    %t = pipe.take part %ring[%turn] : !pipe.ring<3, bf16>, !pipe.cursor<3> -> tensor<bf16>
  }
  tile.return
}
