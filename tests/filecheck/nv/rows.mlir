// RUN: tessera opt %s | filecheck %s
// A part of a tile along an axis: some of the registers that each thread has.
nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %z : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>>
  %a = nv.rows %t, 0[32] : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>> -> tensor<32x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1]>>
  %b = nv.rows %t, 0[0] {k} : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>> -> tensor<32x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1]>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%z: f32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %t = tile.full %z : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>>
// CHECK-NEXT:     %a = nv.rows %t, 0[32] : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>> -> tensor<32x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1]>>
// CHECK-NEXT:     %b = nv.rows %t, 0[0] {k} : tensor<64x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1, 2:0*32]>> -> tensor<32x32xf32, #nv.layout<[4:1*8, 32:0*1], [8:1*1]>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
