tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  // expected: 1 offsets into !tile.view<2, bf16, global>, for slots of tensor<8x16xbf16>
  pipe.copy %x[%i], %ring[%i] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  %ring = pipe.ring : !pipe.ring<3, 16xbf16>
  // expected: 2 offsets into !tile.view<2, bf16, global>, for slots of tensor<16xbf16>
  pipe.copy %x[%i, %i], %ring[%i] : !tile.view<2, bf16, global>, !pipe.ring<3, 16xbf16>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xf16>
  // expected: the view holds bf16, the ring f16
  pipe.copy %x[%i, %i], %ring[%i] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xf16>
  tile.return
}
