tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %turned = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  pipe.roles 2 copies {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    // expected: tiles are turned by the agent that turns
    pipe.turn %ring, %turned[%c] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %turned = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  pipe.roles 2 copies {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    pipe.fill %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.cursor<2>
  } turns {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    // expected: tensor<8x16xf8E4M3FN> turned is not tensor<8x16xf8E4M3FN>
    pipe.turn %ring, %ring[%c] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.cursor<2>
  } computes {
    %t = pipe.cursor %turned : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.cursor<2>
    %tile = pipe.take %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2> -> tensor<16x8xf8E4M3FN>
    pipe.release %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %turned = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  %other = pipe.ring : !pipe.ring<3, 16x8xf8E4M3FN>
  pipe.roles 2 copies {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    pipe.fill %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.cursor<2>
  } turns {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    // expected: a cursor of 2 slots in a ring of 3
    pipe.turn %ring, %other[%c] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<3, 16x8xf8E4M3FN>, !pipe.cursor<2>
  } computes {
    %t = pipe.cursor %turned : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.cursor<2>
    %tile = pipe.take %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2> -> tensor<16x8xf8E4M3FN>
    pipe.release %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %turned = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  pipe.roles 2 copies {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    pipe.fill %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.cursor<2>
  } turns {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    // expected: rings are filled by the agent that copies
    pipe.fill %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.cursor<2>
  } computes {
    %t = pipe.cursor %turned : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.cursor<2>
    %tile = pipe.take %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2> -> tensor<16x8xf8E4M3FN>
    pipe.release %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
  }
  tile.return
}
