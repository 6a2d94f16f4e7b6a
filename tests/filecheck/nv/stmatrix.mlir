// RUN: tessera opt %s | filecheck %s
// Tiles of 64 rows of a warpgroup, or of 16 rows of each warp.
nv.func @f(%h: f16) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %h : tensor<64x128xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>
  %a = nv.alloc : !nv.shared<64x128xf16, 128>
  %b = nv.alloc : !nv.shared<16x64xf16, 128>
  nv.stmatrix %t[0], %a : tensor<64x128xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>, !nv.shared<64x128xf16, 128>
  nv.stmatrix %t[64], %b {k} : tensor<64x128xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>, !nv.shared<16x64xf16, 128>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%h: f16) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %t = tile.full %h : tensor<64x128xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<64x128xf16, 128>
// CHECK-NEXT:     %b = nv.alloc : !nv.shared<16x64xf16, 128>
// CHECK-NEXT:     nv.stmatrix %t[0], %a : tensor<64x128xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>, !nv.shared<64x128xf16, 128>
// CHECK-NEXT:     nv.stmatrix %t[64], %b {k} : tensor<64x128xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>, !nv.shared<16x64xf16, 128>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
