// RUN: tessera opt %s -p prefetch-small-loads | filecheck %s
// Scales of the first iteration are loaded in front of the loop, those of the next in each iteration.
!row = tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>
!wide = tensor<16x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1]>>
nv.func @f(%x: !tile.view<2, f32, global>, %n: index) outputs 0 shapes [[K, 64], []] grid [1] threads 128 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %room = nv.alloc : !nv.shared<16x64xf32, 128>
  scf.for %k = %zero to %n step %one {
    %s = tile.load %x[%k, %zero] : !tile.view<2, f32, global> -> !row
    %same = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> !row
    %sum = tile.ew<add> %s, %same : !row, !row -> !row
    %b = tile.broadcast %sum : !row -> !wide
    nv.write %b, %room : !wide, !nv.shared<16x64xf32, 128>
  }
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, f32, global>, %n: index) outputs 0 shapes [[K, 64], []] grid [1] threads 128 {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     %room = nv.alloc : !nv.shared<16x64xf32, 128>
// CHECK-NEXT:     %s = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>
// CHECK-NEXT:     %0 = scf.for %k = %zero to %n step %one iter_args(%s_1 = %s) -> (tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>) {
// CHECK-NEXT:       %1 = arith.addi %k, %one : index
// CHECK-NEXT:       %s_2 = tile.load %x[%1, %zero] : !tile.view<2, f32, global> -> tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>
// CHECK-NEXT:       %same = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>
// CHECK-NEXT:       %sum = tile.ew<add> %s_1, %same : tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>, tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>> -> tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>
// CHECK-NEXT:       %b = tile.broadcast %sum : tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>> -> tensor<16x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1]>>
// CHECK-NEXT:       nv.write %b, %room : tensor<16x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1]>>, !nv.shared<16x64xf32, 128>
// CHECK-NEXT:       scf.yield %s_2 : tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>
// CHECK-NEXT:     }
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
