// RUN: tessera opt %s | filecheck %s
// The same tile held by other threads: sums of a product, pieces of rows, a row that all warps have.
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 64 {
  %a = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1, 2:1*8], [2:1*1, 2:0*8]>>
  %b = nv.convert %a : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1, 2:1*8], [2:1*1, 2:0*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*4, 16:0*1], [4:1*1]>>
  %c = tile.full %x : tensor<20xf32, #nv.layout<[32:0*1, 2:_], []>>
  %d = nv.convert %c {k} : tensor<20xf32, #nv.layout<[32:0*1, 2:_], []>> -> tensor<20xf32, #nv.layout<[64:_], [20:0*1]>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 64 {
// CHECK-NEXT:     %a = tile.full %x : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1, 2:1*8], [2:1*1, 2:0*8]>>
// CHECK-NEXT:     %b = nv.convert %a : tensor<16x16xf32, #nv.layout<[4:1*2, 8:0*1, 2:1*8], [2:1*1, 2:0*8]>> -> tensor<16x16xf32, #nv.layout<[4:1*4, 16:0*1], [4:1*1]>>
// CHECK-NEXT:     %c = tile.full %x : tensor<20xf32, #nv.layout<[32:0*1, 2:_], []>>
// CHECK-NEXT:     %d = nv.convert %c {k} : tensor<20xf32, #nv.layout<[32:0*1, 2:_], []>> -> tensor<20xf32, #nv.layout<[64:_], [20:0*1]>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
