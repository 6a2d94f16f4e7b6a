// RUN: tessera opt %s | filecheck %s
// Sums are handed on when their products are done.
nv.func @f(%h: f16) outputs 0 shapes [[]] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  %s = nv.wgmma %a, %a : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %p = tile.full %h : tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.wgmma_wait 1
  %t = nv.wgmma_wait 0, %s : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %u = nv.wgmma_wait 0, %s : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>> keeping %p : tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %v, %w = nv.wgmma_wait 2, %s, %s : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>, tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>> {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%h: f16) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<64x64xf16, 128>
// CHECK-NEXT:     %s = nv.wgmma %a, %a : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %p = tile.full %h : tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     nv.wgmma_wait 1
// CHECK-NEXT:     %t = nv.wgmma_wait 0, %s : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %u = nv.wgmma_wait 0, %s : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>> keeping %p : tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %v, %w = nv.wgmma_wait 2, %s, %s : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>, tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>> {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
