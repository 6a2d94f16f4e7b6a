tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  // expected: a ring of tensor<8x16xbf16> does not hold tensor<16x8xbf16>
  %a = pipe.get %ring[%i] : !pipe.ring<3, 8x16xbf16> -> tensor<16x8xbf16>
  tile.return
}
