// RUN: tessera opt %s | filecheck %s
nv.func @f(%c: i1) outputs 0 shapes [[]] grid [1] threads 128 {
  %t = tile.full %c : tensor<64x4xi1, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
  %a = nv.any %t : tensor<64x4xi1, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
  %b = nv.any %t {k} : tensor<64x4xi1, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%c: i1) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %t = tile.full %c : tensor<64x4xi1, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
// CHECK-NEXT:     %a = nv.any %t : tensor<64x4xi1, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
// CHECK-NEXT:     %b = nv.any %t {k} : tensor<64x4xi1, #nv.layout<[4:1*1, 8:0*1, 4:0*16], [2:0*8]>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
