nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %a = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  // expected: converting keeps shape and element
  %b = nv.convert %a : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x8xf32, #nv.layout<[2:1*4, 16:0*1], [4:1*1]>>
  nv.return
}
// -----
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %a = tile.full %x : tensor<4x8xf32, #nv.layout<[8:1*1, 4:0*1], []>>
  // expected: converting keeps shape and element
  %b = nv.convert %a : tensor<4x8xf32, #nv.layout<[8:1*1, 4:0*1], []>> -> tensor<4x8xbf16, #nv.layout<[8:1*1, 4:0*1], []>>
  nv.return
}
// -----
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %a = tile.full %x : tensor<4x8xf32, #nv.layout<[8:1*1, 4:0*1], []>>
  // expected: cannot read IR
  %b = nv.convert %a : tensor<4x8xf32, #nv.layout<[8:1*1, 4:0*1], []>> -> tensor<4x8xf32, #nv.layout<[8:1*1, 4:0], []>>
  nv.return
}
