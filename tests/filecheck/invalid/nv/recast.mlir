nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<4x128x64xbf16, 128>
  // expected: cannot be seen as !nv.shared<4x64x64xbf16, 128>
  %b = nv.recast %a : !nv.shared<4x128x64xbf16, 128> -> !nv.shared<4x64x64xbf16, 128>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<128x128xbf16, 128>
  // expected: cannot be seen as !nv.shared<2x64x128xbf16, 128>
  %b = nv.recast %a : !nv.shared<128x128xbf16, 128> -> !nv.shared<2x64x128xbf16, 128>
  nv.return
}
