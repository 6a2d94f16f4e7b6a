nv.func @f(%h: f16) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %h : tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %a = nv.alloc : !nv.shared<32x64xf16, 128>
  // expected: does not go into !nv.shared<32x64xf16, 128>: 16 or 64 rows of the same 16 or 8 bits
  nv.stmatrix %t[0], %a : tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>, !nv.shared<32x64xf16, 128>
  nv.return
}
// -----
nv.func @f(%h: f16) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %h : tensor<64x128xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  // expected: columns 8 to 72 of
  nv.stmatrix %t[8], %a : tensor<64x128xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>, !nv.shared<64x64xf16, 128>
  nv.return
}
