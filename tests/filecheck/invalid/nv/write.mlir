nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %a = nv.alloc : !nv.shared<16x32xf32, 64>
  %t = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  // expected: a tile of 16x16xf32 does not fit !nv.shared<16x32xf32, 64>
  nv.write %t, %a : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, !nv.shared<16x32xf32, 64>
  nv.return
}
// -----
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %a = nv.alloc : !nv.shared<16x16xf32, 64>
  %h = tile.full %x : tensor<8x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:1*8]>>
  // expected: rows 12 to 20 of !nv.shared<16x16xf32, 64>
  nv.write %h, %a row 12 : tensor<8x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:1*8]>>, !nv.shared<16x16xf32, 64>
  nv.return
}
// -----
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %a = nv.alloc : !nv.shared<16x32xf32, 64>
  %h = tile.full %x : tensor<8x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:1*8]>>
  // expected: are no rows of !nv.shared<16x32xf32, 64>
  nv.write %h, %a row 0 : tensor<8x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:1*8]>>, !nv.shared<16x32xf32, 64>
  nv.return
}
