nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
  // expected: gives tensor<64x4xf32
  %a = nv.partial<max> %t, 1 : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>> -> tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
  nv.return
}
// -----
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x6xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>>
  // expected: has elements that belong to no tile: fold it as a whole
  %a = nv.partial<max> %t, 1 : tensor<64x6xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>> -> tensor<64x4xf32, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
  nv.return
}
// -----
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
  // expected: axis 2 is out of range for rank 2
  %a = nv.partial<max> %t, 2 : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>> -> tensor<64x4xf32, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
  nv.return
}
