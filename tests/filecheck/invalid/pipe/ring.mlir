tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  // expected: a ring has at least one slot, got 0
  %r = pipe.ring : !pipe.ring<0, 8x16xbf16>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  // expected: a ring holds tiles, got tensor<8x?xbf16>
  %r = pipe.ring : !pipe.ring<2, 8x?xbf16>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  // expected: a ring holds tiles, got tensor<8xcomplex<f32>>
  %r = pipe.ring : !pipe.ring<2, 8xcomplex<f32>>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  // expected: pipe.ring
  %r = pipe.ring : index
  tile.return
}
