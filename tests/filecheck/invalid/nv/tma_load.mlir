nv.func @f(%x: !tile.view<4, f16, global>, %i: i32) outputs 0 shapes [[B, H, S, 128], []] grid [1] threads 128 {
  %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
  %s = nv.alloc : !nv.shared<80x128xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<2>
  // expected: 2 offsets into !nv.map<64x80x2xf16, 128>, which has 3 axes
  nv.tma_load %m[%i, %i], %s, %b[%i] : !nv.map<64x80x2xf16, 128>, !nv.shared<80x128xf16, 128>, !nv.mbarriers<2>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>, %i: i32) outputs 0 shapes [[B, H, S, 128], []] grid [1] threads 128 {
  %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
  %s = nv.alloc : !nv.shared<80x128xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<2>
  %r = nv.alloc : !nv.shared<2x80x128xf16, 128>
  // expected: expected one tile of f16 in shared memory
  nv.tma_load %m[%i, %i, %i], %r, %b[%i] : !nv.map<64x80x2xf16, 128>, !nv.shared<2x80x128xf16, 128>, !nv.mbarriers<2>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>, %i: i32) outputs 0 shapes [[B, H, S, 128], []] grid [1] threads 128 {
  %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
  %s = nv.alloc : !nv.shared<80x128xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<2>
  %r = nv.alloc : !nv.shared<80x64xf16, 128>
  // expected: does not fill !nv.shared<80x64xf16, 128>
  nv.tma_load %m[%i, %i, %i], %r, %b[%i] : !nv.map<64x80x2xf16, 128>, !nv.shared<80x64xf16, 128>, !nv.mbarriers<2>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>, %i: i32) outputs 0 shapes [[B, H, S, 128], []] grid [1] threads 128 {
  %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
  %s = nv.alloc : !nv.shared<80x128xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<2>
  %e = nv.mapa %b, %i : !nv.mbarriers<2> -> !nv.mbarriers<2, cluster>
  // expected: expected mbarriers of this block
  nv.tma_load %m[%i, %i, %i], %s, %e[%i] : !nv.map<64x80x2xf16, 128>, !nv.shared<80x128xf16, 128>, !nv.mbarriers<2, cluster>
  nv.return
}
// -----
nv.func @f(%x: !tile.view<4, f16, global>, %i: i32) outputs 0 shapes [[B, H, S, 128], []] grid [1] threads 128 {
  %m = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x16xf16, 128>
  %s = nv.alloc : !nv.shared<80x128xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<2>
  // expected: does not fill !nv.shared<80x128xf16, 128>
  nv.tma_load %m[%i, %i], %s row %i, %b[%i] : !nv.map<64x16xf16, 128>, !nv.shared<80x128xf16, 128>, !nv.mbarriers<2>
  nv.return
}
