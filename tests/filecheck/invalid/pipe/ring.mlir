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
// -----
tile.func @f() outputs 0 shapes [] grid [4] attributes {persistent} {
  // expected: a multicast ring is in a function with the attribute `cluster`, a number above 1
  %r = pipe.ring multicast : !pipe.ring<2, 8x16xbf16>
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [4] attributes {persistent, cluster = 1 : i64} {
  // expected: a multicast ring is in a function with the attribute `cluster`, a number above 1
  %r = pipe.ring multicast : !pipe.ring<2, 8x16xbf16>
  tile.return
}
