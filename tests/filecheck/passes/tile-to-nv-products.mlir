// RUN: tessera opt %s -p make-async{depth=2},tile-to-nv{warps=4} | filecheck %s
// Operands go through shared memory: copied ahead in loops, at once elsewhere, written where they were computed. Accumulators lie as
// tensor cores want them, and so does what comes of them.
tile.func @f(%q: !tile.view<2, bf16, global>, %k: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[64, 32], [N, 32], [64, 32]] grid [1] {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %n = tile.dim %k, 0 : !tile.view<2, bf16, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<64x16xf32>
  %start = tile.full %nothing : tensor<64x32xf32>
  %a = tile.load %q[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<64x32xbf16>
  %sum = scf.for %i = %zero to %n step %step iter_args(%acc = %start) -> (tensor<64x32xf32>) {
    %b = tile.load %k[%i, %zero] : !tile.view<2, bf16, global> -> tensor<16x32xbf16>
    %c = tile.trans %b, [1, 0] : tensor<16x32xbf16> -> tensor<32x16xbf16>
    %scores = tile.dot %a, %c, %clear : tensor<64x32xbf16>, tensor<32x16xbf16>, tensor<64x16xf32> -> tensor<64x16xf32>
    %weights = tile.ew<cast> %scores : tensor<64x16xf32> -> tensor<64x16xbf16>
    %next = tile.dot %weights, %b, %acc : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> tensor<64x32xf32>
    scf.yield %next : tensor<64x32xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<64x32xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%q: !tile.view<2, bf16, global>, %k: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[64, 32], [N, 32], [64, 32]] grid [1] threads 128 attributes {blocks = 1 : i64} {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %step = arith.constant 16 : index
// CHECK-NEXT:     %n = tile.dim %k, 0 : !tile.view<2, bf16, global>
// CHECK-NEXT:     %nothing = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %clear = tile.full %nothing : tensor<64x16xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     %start = tile.full %nothing : tensor<64x32xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>
// CHECK-NEXT:     %0 = nv.alloc : !nv.shared<64x32xbf16, 64>
// CHECK-NEXT:     nv.barrier
// CHECK-NEXT:     nv.copy_async %q[%zero, %zero], %0 : !tile.view<2, bf16, global>, !nv.shared<64x32xbf16, 64>
// CHECK-NEXT:     nv.commit
// CHECK-NEXT:     nv.wait 0
// CHECK-NEXT:     %1 = nv.alloc : !nv.shared<2x16x32xbf16, 64>
// CHECK-NEXT:     %2 = arith.constant 0 : index
// CHECK-NEXT:     %3 = arith.muli %step, %2 : index
// CHECK-NEXT:     %4 = arith.addi %zero, %3 : index
// CHECK-NEXT:     %5 = arith.constant 0 : index
// CHECK-NEXT:     %6 = arith.cmpi slt, %4, %n : index
// CHECK-NEXT:     scf.if %6 {
// CHECK-NEXT:       %7 = nv.slot %1[%5] : !nv.shared<2x16x32xbf16, 64> -> !nv.shared<16x32xbf16, 64>
// CHECK-NEXT:       nv.copy_async %k[%4, %zero], %7 : !tile.view<2, bf16, global>, !nv.shared<16x32xbf16, 64>
// CHECK-NEXT:     }
// CHECK-NEXT:     nv.commit
// CHECK-NEXT:     %8 = arith.constant 0 : index
// CHECK-NEXT:     %sum, %sum_1 = scf.for %9 = %zero to %n step %step iter_args(%acc = %start, %10 = %8) -> (tensor<64x32xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>, index) {
// CHECK-NEXT:       nv.wait 0
// CHECK-NEXT:       %11 = arith.constant 0 : index
// CHECK-NEXT:       %12 = arith.constant 1 : index
// CHECK-NEXT:       %13 = arith.cmpi eq, %10, %11 : index
// CHECK-NEXT:       %14 = arith.constant 1 : index
// CHECK-NEXT:       %15 = arith.subi %10, %14 : index
// CHECK-NEXT:       %16 = arith.select %13, %12, %15 : index
// CHECK-NEXT:       %17 = arith.muli %step, %12 : index
// CHECK-NEXT:       %18 = arith.addi %9, %17 : index
// CHECK-NEXT:       %19 = nv.slot %1[%16] : !nv.shared<2x16x32xbf16, 64> -> !nv.shared<16x32xbf16, 64>
// CHECK-NEXT:       nv.copy_async %k[%18, %zero], %19 : !tile.view<2, bf16, global>, !nv.shared<16x32xbf16, 64>
// CHECK-NEXT:       nv.commit
// CHECK-NEXT:       %20 = nv.slot %1[%10] : !nv.shared<2x16x32xbf16, 64> -> !nv.shared<16x32xbf16, 64>
// CHECK-NEXT:       %21 = nv.read %0[0, 0] : !nv.shared<64x32xbf16, 64> -> tensor<64x32xbf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>
// CHECK-NEXT:       %22 = nv.read %20[0, 0] transposed : !nv.shared<16x32xbf16, 64> -> tensor<32x16xbf16, #nv.layout<[4:0*2, 8:1*1, 4:_], [2:0*1, 4:0*8, 2:1*8]>>
// CHECK-NEXT:       %scores = nv.mma %21, %22, %clear : tensor<64x32xbf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>, tensor<32x16xbf16, #nv.layout<[4:0*2, 8:1*1, 4:_], [2:0*1, 4:0*8, 2:1*8]>>, tensor<64x16xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<64x16xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:       %weights = tile.ew<cast> %scores : tensor<64x16xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 2:1*8]>> -> tensor<64x16xbf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:       %23 = nv.read %20[0, 0] : !nv.shared<16x32xbf16, 64> -> tensor<16x32xbf16, #nv.layout<[4:0*2, 8:1*1, 4:_], [2:0*1, 2:0*8, 4:1*8]>>
// CHECK-NEXT:       %next = nv.mma %weights, %23, %acc : tensor<64x16xbf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 2:1*8]>>, tensor<16x32xbf16, #nv.layout<[4:0*2, 8:1*1, 4:_], [2:0*1, 2:0*8, 4:1*8]>>, tensor<64x32xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>> -> tensor<64x32xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>
// CHECK-NEXT:       %24 = arith.constant 1 : index
// CHECK-NEXT:       %25 = arith.cmpi eq, %10, %24 : index
// CHECK-NEXT:       %26 = arith.constant 1 : index
// CHECK-NEXT:       %27 = arith.addi %10, %26 : index
// CHECK-NEXT:       %28 = arith.constant 0 : index
// CHECK-NEXT:       %29 = arith.select %25, %28, %27 : index
// CHECK-NEXT:       scf.yield %next, %29 : tensor<64x32xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>, index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.store %sum, %y[%zero, %zero] : tensor<64x32xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 4:1*8]>>, !tile.view<2, f32, global>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
