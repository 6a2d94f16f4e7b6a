// RUN: tessera opt %s | filecheck %s
// What each thread holds along an axis becomes one element.
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
  %a = nv.partial<max> %t, 1 : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>> -> tensor<64x4xf32, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
  %b = nv.partial<sum> %t, 0 {k} : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>> -> tensor<32x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*8], [2:1*1, 10:1*8]>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %t = tile.full %z : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>>
// CHECK-NEXT:     %a = nv.partial<max> %t, 1 : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>> -> tensor<64x4xf32, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
// CHECK-NEXT:     %b = nv.partial<sum> %t, 0 {k} : tensor<64x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 10:1*8]>> -> tensor<32x80xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*8], [2:1*1, 10:1*8]>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
