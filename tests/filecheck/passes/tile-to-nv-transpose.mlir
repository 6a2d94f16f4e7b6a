// RUN: tessera opt %s -p tile-to-nv{warps=4} | filecheck %s
// Both accesses go along rows of their own: between them the layout is converted.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[32, 32], [32, 32]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<32x32xf32>
  %b = tile.trans %a, [1, 0] : tensor<32x32xf32> -> tensor<32x32xf32>
  tile.store %b, %y[%zero, %zero] : tensor<32x32xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[32, 32], [32, 32]] grid [1] threads 128 {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<32x32xf32, #nv.layout<[8:1*4, 16:0*1], [4:1*1, 2:0*16]>>
// CHECK-NEXT:     %b = tile.trans %a, [1, 0] : tensor<32x32xf32, #nv.layout<[8:1*4, 16:0*1], [4:1*1, 2:0*16]>> -> tensor<32x32xf32, #nv.layout<[8:0*4, 16:1*1], [4:0*1, 2:1*16]>>
// CHECK-NEXT:     %0 = nv.convert %b : tensor<32x32xf32, #nv.layout<[8:0*4, 16:1*1], [4:0*1, 2:1*16]>> -> tensor<32x32xf32, #nv.layout<[8:1*4, 16:0*1], [4:1*1, 2:0*16]>>
// CHECK-NEXT:     tile.store %0, %y[%zero, %zero] : tensor<32x32xf32, #nv.layout<[8:1*4, 16:0*1], [4:1*1, 2:0*16]>>, !tile.view<2, f32, global>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
