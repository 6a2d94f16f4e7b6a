nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  // expected: the result has 64 rows and the layout of an accumulator
  %s = nv.wgmma %a, %a : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  // expected: the result has rows and columns
  %s = nv.wgmma %a, %a : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64xf32, #nv.layout<[4:_, 8:0*1, 4:0*16], [2:0*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  // expected: wgmma does not multiply f16 by f16 with an accumulator of f16
  %s = nv.wgmma %a, %a : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  %b = nv.alloc : !nv.shared<64x32xf16, 64>
  // expected: the right operand is one tile in panels of 128 bytes, not !nv.shared<64x32xf16, 64>
  %s = nv.wgmma %a, %b : !nv.shared<64x64xf16, 128>, !nv.shared<64x32xf16, 64> -> tensor<64x32xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  %b = nv.alloc : !nv.shared<64x64xbf16, 128>
  // expected: wgmma does not multiply f16 by bf16 with an accumulator of f32
  %s = nv.wgmma %a, %b : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xbf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  %b = nv.alloc : !nv.shared<80x64xf16, 128>
  // expected: times !nv.shared<80x64xf16, 128> does not give
  %s = nv.wgmma %a, %b : !nv.shared<64x64xf16, 128>, !nv.shared<80x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x8xf16, 128>
  %b = nv.alloc : !nv.shared<8x64xf16, 128>
  // expected: a depth of 16·k and 8·n columns up to 256, not 8 and 64
  %s = nv.wgmma %a, %b : !nv.shared<64x8xf16, 128>, !nv.shared<8x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  // expected: one panel lies beside another one, neither transposed
  %s = nv.wgmma %a, transposed %a beside %a : !nv.shared<64x64xf16, 128> : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64x72xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 9:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  // expected: does not give 136 columns
  %s = nv.wgmma %a, %a beside %a : !nv.shared<64x64xf16, 128> : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64x136xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 17:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xi8, 128>
  // expected: a right operand of i8 is transposed
  %s = nv.wgmma %a, %a : !nv.shared<64x64xi8, 128>, !nv.shared<64x64xi8, 128> -> tensor<64x64xi32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x16xi8, 128>
  // expected: a depth of 32·k and 16·n columns up to 256, not 16 and 64
  %s = nv.wgmma %a, transposed %a : !nv.shared<64x16xi8, 128>, !nv.shared<64x16xi8, 128> -> tensor<64x64xi32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x32xi8, 128>
  %b = nv.alloc : !nv.shared<40x32xi8, 128>
  // expected: a depth of 32·k and 16·n columns up to 256, not 32 and 40
  %s = nv.wgmma %a, transposed %b : !nv.shared<64x32xi8, 128>, !nv.shared<40x32xi8, 128> -> tensor<64x40xi32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 5:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf32, 128>
  // expected: wgmma does not multiply f32 by f32 with an accumulator of f32
  %s = nv.wgmma %a, transposed %a : !nv.shared<64x64xf32, 128>, !nv.shared<64x64xf32, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f(%h: f8E4M3FN) outputs 0 shapes [[]] grid [1] threads 128 {
  %p = tile.full %h : tensor<64x64xf8E4M3FN, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %b = nv.alloc : !nv.shared<64x64xf8E4M3FN, 128>
  // expected: the left operand has 64 rows and the layout of left operands
  %s = nv.wgmma %p, transposed %b : tensor<64x64xf8E4M3FN, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>, !nv.shared<64x64xf8E4M3FN, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf8E4M3FN, 128>
  %b = nv.alloc : !nv.shared<64x64xf8E4M3FN, 128, paired>
  // expected: columns that are paired meet a left operand in registers
  %s = nv.wgmma %a, transposed %b : !nv.shared<64x64xf8E4M3FN, 128>, !nv.shared<64x64xf8E4M3FN, 128, paired> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f(%h: f8E4M3FN) outputs 0 shapes [[]] grid [1] threads 128 {
  %p = tile.full %h : tensor<64x64xf8E4M3FN, #nv.layout<[4:1*4, 8:0*1, 4:0*16], [4:1*1, 2:0*8, 4:1*16]>>
  %b = nv.alloc : !nv.shared<64x64xf8E4M3FN, 128, paired>
  // expected: the left operand has 64 rows and the layout of paired left operands
  %s = nv.wgmma %p, transposed %b : tensor<64x64xf8E4M3FN, #nv.layout<[4:1*4, 8:0*1, 4:0*16], [4:1*1, 2:0*8, 4:1*16]>>, !nv.shared<64x64xf8E4M3FN, 128, paired> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf8E4M3FN, 128>
  // expected: a left operand of f8e4m3 lies across: the depth lies side by side
  %s = nv.wgmma across %a, transposed %a : !nv.shared<64x64xf8E4M3FN, 128>, !nv.shared<64x64xf8E4M3FN, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x128xf16, 128>
  // expected: times !nv.shared<64x128xf16, 128> does not give
  %s = nv.wgmma across %a, %a : !nv.shared<64x128xf16, 128>, !nv.shared<64x128xf16, 128> -> tensor<64x128xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>
  nv.return
}
// -----
nv.func @f(%h: f16) outputs 0 shapes [[]] grid [1] threads 128 {
  %p = tile.full %h : tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %b = nv.alloc : !nv.shared<64x64xf16, 128>
  // expected: a left operand in registers does not lie across
  %s = nv.wgmma across %p, %b : tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>, !nv.shared<64x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}
