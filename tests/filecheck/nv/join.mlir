// RUN: tessera opt %s | filecheck %s
// The registers of tiles side by side.
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %a = tile.full %z : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
  %b = tile.full %z : tensor<64x8xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>>
  %c = nv.join %a, %b : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>, tensor<64x8xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>> -> tensor<64x72xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 9:1*8]>>
  %d = nv.join %b {k} : tensor<64x8xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>> -> tensor<64x8xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %a = tile.full %z : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
// CHECK-NEXT:     %b = tile.full %z : tensor<64x8xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>>
// CHECK-NEXT:     %c = nv.join %a, %b : tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>, tensor<64x8xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>> -> tensor<64x72xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 9:1*8]>>
// CHECK-NEXT:     %d = nv.join %b {k} : tensor<64x8xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>> -> tensor<64x8xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8]>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
