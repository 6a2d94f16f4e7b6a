nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected 0 to 7 groups that still run, got 8
  nv.wgmma_wait 8
  nv.return
}
// -----
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %s = tile.full %z : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>
  // expected: what is handed on has 64 rows and the layout of an accumulator
  %t = nv.wgmma_wait 0, %s : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>
  nv.return
}
