nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
  %a = nv.alloc : !nv.shared<16x32xf16, 64>
  // expected: expected two axes and the same element
  %b = nv.read %a[0, 0] : !nv.shared<16x32xf16, 64> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
  %a = nv.alloc : !nv.shared<16x32xbf16, 64>
  // expected: 16 by 16 at 0, 24 are not a part of !nv.shared<16x32xbf16, 64>
  %b = nv.read %a[0, 24] : !nv.shared<16x32xbf16, 64> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.return
}
