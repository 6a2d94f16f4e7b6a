nv.func @f(%x: !tile.view<4, f16, global>, %i: i32) outputs 0 shapes [[B, H, S, 128], []] grid [1] threads 128 {
  %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
  %s = nv.alloc : !nv.shared<80x128xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<2>
  %r = nv.alloc : !nv.shared<80x64xf16, 128>
  // expected: does not fill !nv.shared<80x64xf16, 128>
  nv.tma_store %r, %m[%i, %i, %i] : !nv.shared<80x64xf16, 128>, !nv.map<64x80x2xf16, 128>
  nv.return
}
