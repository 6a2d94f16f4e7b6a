// RUN: tessera opt %s -p tile-to-nv{warps=1} | filecheck %s
// Tensor cores have no dots of 32-bit numbers: every column of one operand is multiplied with every row of the other.
tile.func @f(%x: !tile.view<2, i32, global>, %y: !tile.view<2, i32, global>) outputs 1 shapes [[8, 2], [8, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0 : i32
  %clear = tile.full %nothing : tensor<8x8xi32>
  %a = tile.load %x[%zero, %zero] : !tile.view<2, i32, global> -> tensor<8x2xi32>
  %b = tile.trans %a, [1, 0] : tensor<8x2xi32> -> tensor<2x8xi32>
  %c = tile.dot %a, %b, %clear : tensor<8x2xi32>, tensor<2x8xi32>, tensor<8x8xi32> -> tensor<8x8xi32>
  tile.store %c, %y[%zero, %zero] : tensor<8x8xi32>, !tile.view<2, i32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, i32, global>, %y: !tile.view<2, i32, global>) outputs 1 shapes [[8, 2], [8, 8]] grid [1] threads 32 attributes {blocks = 1 : i64} {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %nothing = arith.constant 0 : i32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     %0 = nv.alloc : !nv.shared<8x2xi32, 16>
// CHECK-NEXT:     nv.barrier
// CHECK-NEXT:     nv.copy_async %x[%zero, %zero], %0 : !tile.view<2, i32, global>, !nv.shared<8x2xi32, 16>
// CHECK-NEXT:     nv.commit
// CHECK-NEXT:     nv.wait 0
// CHECK-NEXT:     %1 = nv.read %0[0, 0] : !nv.shared<8x2xi32, 16> -> tensor<8x1xi32, #nv.layout<[4:_, 8:0*1], []>>
// CHECK-NEXT:     %2 = tile.broadcast %1 : tensor<8x1xi32, #nv.layout<[4:_, 8:0*1], []>> -> tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     %3 = nv.read %0[0, 0] transposed : !nv.shared<8x2xi32, 16> -> tensor<1x8xi32, #nv.layout<[4:1*2, 8:_], [2:1*1]>>
// CHECK-NEXT:     %4 = tile.broadcast %3 : tensor<1x8xi32, #nv.layout<[4:1*2, 8:_], [2:1*1]>> -> tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     %5 = tile.ew<mul> %2, %4 : tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>, tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>> -> tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     %6 = tile.ew<add> %clear, %5 : tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>, tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>> -> tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     %7 = nv.read %0[0, 1] : !nv.shared<8x2xi32, 16> -> tensor<8x1xi32, #nv.layout<[4:_, 8:0*1], []>>
// CHECK-NEXT:     %8 = tile.broadcast %7 : tensor<8x1xi32, #nv.layout<[4:_, 8:0*1], []>> -> tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     %9 = nv.read %0[0, 1] transposed : !nv.shared<8x2xi32, 16> -> tensor<1x8xi32, #nv.layout<[4:1*2, 8:_], [2:1*1]>>
// CHECK-NEXT:     %10 = tile.broadcast %9 : tensor<1x8xi32, #nv.layout<[4:1*2, 8:_], [2:1*1]>> -> tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     %11 = tile.ew<mul> %8, %10 : tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>, tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>> -> tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     %c = tile.ew<add> %6, %11 : tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>, tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>> -> tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>
// CHECK-NEXT:     tile.store %c, %y[%zero, %zero] : tensor<8x8xi32, #nv.layout<[4:1*2, 8:0*1], [2:1*1]>>, !tile.view<2, i32, global>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
