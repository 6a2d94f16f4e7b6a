// RUN: tessera opt %s | filecheck %s
// Products of a warpgroup: operands in shared memory, the left one also in registers.
nv.func @f(%z: f32, %h: f16, %m: f8E4M3FN) outputs 0 shapes [[], [], []] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  %b = nv.alloc : !nv.shared<80x64xf16, 128>
  %v = nv.alloc : !nv.shared<80x64xf16, 128>
  %o = nv.alloc : !nv.shared<80x64xf16, 128>
  %s = nv.wgmma %a, transposed %b : !nv.shared<64x64xf16, 128>, !nv.shared<80x64xf16, 128> -> tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
  %p = tile.full %h : tensor<64x80xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
  %c = tile.full %z : tensor<64x72xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 9:1*8]>>
  %d = nv.wgmma %p, %v beside %o : !nv.shared<80x64xf16, 128> onto %c : tensor<64x80xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>, !nv.shared<80x64xf16, 128> -> tensor<64x72xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 9:1*8]>>
  %e = tile.full %z : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %g = nv.wgmma %p, %v onto %e {k} : tensor<64x80xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>, !nv.shared<80x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %x = nv.alloc : !nv.shared<64x128xf8E4M3FN, 128>
  %y = nv.alloc : !nv.shared<64x128xf8E5M2, 128>
  %k = nv.wgmma %x, transposed %y : !nv.shared<64x128xf8E4M3FN, 128>, !nv.shared<64x128xf8E5M2, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %q = tile.full %m : tensor<64x128xf8E4M3FN, #nv.layout<[4:1*4, 8:0*1, 4:0*16], [4:1*1, 2:0*8, 8:1*16]>>
  %l = nv.wgmma %q, transposed %x onto %e : tensor<64x128xf8E4M3FN, #nv.layout<[4:1*4, 8:0*1, 4:0*16], [4:1*1, 2:0*8, 8:1*16]>>, !nv.shared<64x128xf8E4M3FN, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %t = nv.alloc : !nv.shared<64x32xtf32, 128>
  %n = nv.wgmma %t, transposed %t : !nv.shared<64x32xtf32, 128>, !nv.shared<64x32xtf32, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %f = nv.wgmma across %a, %a : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %i = nv.alloc : !nv.shared<64x32xi8, 128>
  %u = nv.alloc : !nv.shared<64x32xui8, 128>
  %r = nv.wgmma %i, transposed %u : !nv.shared<64x32xi8, 128>, !nv.shared<64x32xui8, 128> -> tensor<64x64xi32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%z: f32, %h: f16, %m: f8E4M3FN) outputs 0 shapes [[], [], []] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<64x64xf16, 128>
// CHECK-NEXT:     %b = nv.alloc : !nv.shared<80x64xf16, 128>
// CHECK-NEXT:     %v = nv.alloc : !nv.shared<80x64xf16, 128>
// CHECK-NEXT:     %o = nv.alloc : !nv.shared<80x64xf16, 128>
// CHECK-NEXT:     %s = nv.wgmma %a, transposed %b : !nv.shared<64x64xf16, 128>, !nv.shared<80x64xf16, 128> -> tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
// CHECK-NEXT:     %p = tile.full %h : tensor<64x80xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
// CHECK-NEXT:     %c = tile.full %z : tensor<64x72xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 9:1*8]>>
// CHECK-NEXT:     %d = nv.wgmma %p, %v beside %o : !nv.shared<80x64xf16, 128> onto %c : tensor<64x80xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>, !nv.shared<80x64xf16, 128> -> tensor<64x72xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 9:1*8]>>
// CHECK-NEXT:     %e = tile.full %z : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %g = nv.wgmma %p, %v onto %e {k} : tensor<64x80xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>, !nv.shared<80x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %x = nv.alloc : !nv.shared<64x128xf8E4M3FN, 128>
// CHECK-NEXT:     %y = nv.alloc : !nv.shared<64x128xf8E5M2, 128>
// CHECK-NEXT:     %k = nv.wgmma %x, transposed %y : !nv.shared<64x128xf8E4M3FN, 128>, !nv.shared<64x128xf8E5M2, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %q = tile.full %m : tensor<64x128xf8E4M3FN, #nv.layout<[4:1*4, 8:0*1, 4:0*16], [4:1*1, 2:0*8, 8:1*16]>>
// CHECK-NEXT:     %l = nv.wgmma %q, transposed %x onto %e : tensor<64x128xf8E4M3FN, #nv.layout<[4:1*4, 8:0*1, 4:0*16], [4:1*1, 2:0*8, 8:1*16]>>, !nv.shared<64x128xf8E4M3FN, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %t = nv.alloc : !nv.shared<64x32xtf32, 128>
// CHECK-NEXT:     %n = nv.wgmma %t, transposed %t : !nv.shared<64x32xtf32, 128>, !nv.shared<64x32xtf32, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %f = nv.wgmma across %a, %a : !nv.shared<64x64xf16, 128>, !nv.shared<64x64xf16, 128> -> tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %i = nv.alloc : !nv.shared<64x32xi8, 128>
// CHECK-NEXT:     %u = nv.alloc : !nv.shared<64x32xui8, 128>
// CHECK-NEXT:     %r = nv.wgmma %i, transposed %u : !nv.shared<64x32xi8, 128>, !nv.shared<64x32xui8, 128> -> tensor<64x64xi32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
