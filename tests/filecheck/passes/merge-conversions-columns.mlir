// RUN: tessera opt %s -p merge-conversions | filecheck %s
// Sums across warps go through shared memory and come back in the layout that is needed next; those of a warp stay.
nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[64, 64], [64]] grid [1] threads 128 {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
  %sum = tile.reduce<sum> %a, 0 : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64xf32, #nv.layout<[8:0*8, 16:_], [8:0*1]>>
  %columns = nv.convert %sum : tensor<64xf32, #nv.layout<[8:0*8, 16:_], [8:0*1]>> -> tensor<64xf32, #nv.layout<[64:0*1, 2:_], []>>
  tile.store %columns, %y[%zero] : tensor<64xf32, #nv.layout<[64:0*1, 2:_], []>>, !tile.view<1, f32, global>
  %across = tile.reduce<sum> %a, 1 : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64xf32, #nv.layout<[8:_, 16:0*1], [4:0*16]>>
  %rows = nv.convert %across : tensor<64xf32, #nv.layout<[8:_, 16:0*1], [4:0*16]>> -> tensor<64xf32, #nv.layout<[64:0*1, 2:_], []>>
  tile.store %rows, %y[%zero] : tensor<64xf32, #nv.layout<[64:0*1, 2:_], []>>, !tile.view<1, f32, global>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[64, 64], [64]] grid [1] threads 128 {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %sum = tile.reduce<sum> %a, 0 : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64xf32, #nv.layout<[64:0*1, 2:_], []>>
// CHECK-NEXT:     tile.store %sum, %y[%zero] : tensor<64xf32, #nv.layout<[64:0*1, 2:_], []>>, !tile.view<1, f32, global>
// CHECK-NEXT:     %across = tile.reduce<sum> %a, 1 : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64xf32, #nv.layout<[8:_, 16:0*1], [4:0*16]>>
// CHECK-NEXT:     %rows = nv.convert %across : tensor<64xf32, #nv.layout<[8:_, 16:0*1], [4:0*16]>> -> tensor<64xf32, #nv.layout<[64:0*1, 2:_], []>>
// CHECK-NEXT:     tile.store %rows, %y[%zero] : tensor<64xf32, #nv.layout<[64:0*1, 2:_], []>>, !tile.view<1, f32, global>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
