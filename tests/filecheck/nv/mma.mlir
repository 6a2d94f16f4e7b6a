// RUN: tessera opt %s | filecheck %s
// c + a · b in the layouts that the instruction asks for.
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %s = nv.alloc : !nv.shared<16x16xbf16, 32>
  %a = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %b = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>
  %c = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %d = nv.mma %a, %b, %c : tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %e = nv.mma %a, %b, %d {k} : tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
// CHECK-NEXT:     %s = nv.alloc : !nv.shared<16x16xbf16, 32>
// CHECK-NEXT:     %a = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     %b = nv.read %s[0, 0] : !nv.shared<16x16xbf16, 32> -> tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     %c = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     %d = nv.mma %a, %b, %c : tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     %e = nv.mma %a, %b, %d {k} : tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x16xbf16, #nv.layout<[4:0*2, 8:1*1], [2:0*1, 2:0*8, 2:1*8]>>, tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
