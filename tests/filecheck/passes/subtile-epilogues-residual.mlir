// RUN: tessera opt %s -p subtile-epilogues | filecheck %s
// A tile beside an accumulator of 128 columns is loaded and added 64 columns at a time; what loads nothing stays whole.
!sum = tensor<64x128xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 16:1*8]>>
nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[64, N], [64, N]] grid [1] threads 128 {
  %zero = arith.constant 0 : index
  %a = nv.alloc : !nv.shared<64x64xf16, 128>
  %b = nv.alloc : !nv.shared<64x128xf16, 128>
  %products = nv.wgmma %a, %b : !nv.shared<64x64xf16, 128>, !nv.shared<64x128xf16, 128> -> !sum
  %sum = nv.wgmma_wait 0, %products : !sum
  %residual = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> !sum
  %both = tile.ew<add> %sum, %residual : !sum, !sum -> !sum
  tile.store %both, %y[%zero, %zero] : !sum, !tile.view<2, f32, global>
  %twice = tile.ew<add> %sum, %sum : !sum, !sum -> !sum
  tile.store %twice, %y[%zero, %zero] : !sum, !tile.view<2, f32, global>
  nv.return
}

// CHECK:      %sum = nv.wgmma_wait
// CHECK:      [[FIRST:%.+]] = arith.addi %zero
// CHECK-NEXT: [[LOADED:%.+]] = tile.load %x[%zero, [[FIRST]]] : !tile.view<2, f32, global> -> tensor<64x64xf32
// CHECK-NEXT: [[PART:%.+]] = nv.columns %sum[0]
// CHECK-NEXT: [[LEFT:%.+]] = tile.ew<add> [[PART]], [[LOADED]]
// CHECK-NEXT: [[MORE:%.+]] = arith.constant 64 : index
// CHECK-NEXT: [[SECOND:%.+]] = arith.addi %zero, [[MORE]]
// CHECK-NEXT: [[LOADED:%.+]] = tile.load %x[%zero, [[SECOND]]] : !tile.view<2, f32, global> -> tensor<64x64xf32
// CHECK-NEXT: [[PART:%.+]] = nv.columns %sum[64]
// CHECK-NEXT: [[RIGHT:%.+]] = tile.ew<add> [[PART]], [[LOADED]]
// CHECK-NEXT: [[BOTH:%.+]] = nv.join [[LEFT]], [[RIGHT]]
// CHECK-NEXT: tile.store [[BOTH]], %y[%zero, %zero]
// CHECK-NEXT: %twice = tile.ew<add> %sum, %sum : tensor<64x128xf32
