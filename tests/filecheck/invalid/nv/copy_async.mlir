nv.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x32xbf16, 64>
  // expected: 1 offsets into !tile.view<2, bf16, global>: expected one for each of at least two axes
  nv.copy_async %x[%i], %a : !tile.view<2, bf16, global>, !nv.shared<64x32xbf16, 64>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<2x64x32xbf16, 64>
  // expected: a copy fills one tile, not !nv.shared<2x64x32xbf16, 64>: take a slot
  nv.copy_async %x[%i, %i], %a : !tile.view<2, bf16, global>, !nv.shared<2x64x32xbf16, 64>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<2, f16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x32xbf16, 64>
  // expected: the view holds f16, shared memory bf16
  nv.copy_async %x[%i, %i], %a : !tile.view<2, f16, global>, !nv.shared<64x32xbf16, 64>
  nv.return
}
