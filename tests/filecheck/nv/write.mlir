// RUN: tessera opt %s | filecheck %s
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %a = nv.alloc : !nv.shared<16x16xf32, 64>
  %t = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.write %t, %a : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, !nv.shared<16x16xf32, 64>
  nv.write %t, %a {k} : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, !nv.shared<16x16xf32, 64>
  %h = tile.full %x : tensor<8x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:1*8]>>
  nv.write %h, %a row 8 : tensor<8x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:1*8]>>, !nv.shared<16x16xf32, 64>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<16x16xf32, 64>
// CHECK-NEXT:     %t = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     nv.write %t, %a : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, !nv.shared<16x16xf32, 64>
// CHECK-NEXT:     nv.write %t, %a {k} : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>, !nv.shared<16x16xf32, 64>
// CHECK-NEXT:     %h = tile.full %x : tensor<8x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:1*8]>>
// CHECK-NEXT:     nv.write %h, %a row 8 : tensor<8x16xf32, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:1*8]>>, !nv.shared<16x16xf32, 64>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
