nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %s = nv.alloc : !nv.shared<16x16xbf16, 32>
  %a = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %b = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<8x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>
  %c = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  // expected: expected [M, K], [K, N] and [M, N]
  %d = nv.mma %a, %b, %c : tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<8x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.return
}
// -----
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %s = nv.alloc : !nv.shared<16x16xbf16, 32>
  %a = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %b = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>
  %c = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  // expected: the result has the type of c
  %d = nv.mma %a, %b, %c : tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.return
}
// -----
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %s = nv.alloc : !nv.shared<16x16xi16, 32>
  %a = nv.read %s[0, 0] : !nv.shared<16x16xi16, 32> -> tensor<16x16xi16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %b = nv.read %s[0, 0] : !nv.shared<16x16xi16, 32> -> tensor<16x16xi16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>
  %c = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  // expected: the tensor cores have no dot of i16 and i16 into f32
  %d = nv.mma %a, %b, %c : tensor<16x16xi16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xi16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.return
}
// -----
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %s = nv.alloc : !nv.shared<16x16xbf16, 32>
  %a = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %b = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>
  %c = tile.full %x : tensor<16x16xf32, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>
  // expected: is not the layout of an accumulator
  %d = nv.mma %a, %b, %c : tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>> -> tensor<16x16xf32, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>
  nv.return
}
// -----
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %s = nv.alloc : !nv.shared<16x16xbf16, 32>
  %a = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %b = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %c = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  // expected: needs the layout [4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]
  %d = nv.mma %a, %b, %c : tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.return
}
