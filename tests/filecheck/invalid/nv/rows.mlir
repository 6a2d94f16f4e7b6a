nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>>
  // expected: elements 48 to 80 along axis 0 of
  %a = nv.rows %t, 0[48] : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>> -> tensor<32x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1]>>
  nv.return
}
// -----
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>>
  // expected: is no part of
  %a = nv.rows %t, 0[0] : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>> -> tensor<32x16xf32, #nv.layout<[4:1*8, 32:0*1], [4:1*1]>>
  nv.return
}
// -----
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>>
  // expected: threads hold other elements
  %a = nv.rows %t, 0[0] : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>> -> tensor<32x32xf32, #nv.layout<[8:1*4, 16:0*1], [4:1*1, 2:0*16]>>
  nv.return
}
// -----
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>>
  // expected: axis 2
  %a = nv.rows %t, 2[0] : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>> -> tensor<32x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1]>>
  nv.return
}
