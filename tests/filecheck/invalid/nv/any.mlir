nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x4xf32, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
  // expected: any looks at a tile of i1, not tensor<64x4xf32
  %a = nv.any %t : tensor<64x4xf32, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
  nv.return
}
