nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %a = tile.full %z : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  // expected: columns [64] are not 72: whole groups of 8
  %c = nv.join %a : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>> -> tensor<64x72xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 9:1*8]>>
  nv.return
}
// -----
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %a = tile.full %z : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  // expected: pieces of another type than
  %c = nv.join %a : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>> -> tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
