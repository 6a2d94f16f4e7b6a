// RUN: tessera opt %s -p make-async{depth=2},tile-to-nv{warps=1} | filecheck %s --check-prefix=BEFORE
// RUN: tessera opt %s -p make-async{depth=2},tile-to-nv{warps=1},interleave-copies | filecheck %s
// Copies for the next iteration begin behind the first step of this one's dot, and not in front of all of it.
tile.func @f(%a: !tile.view<2, bf16, global>, %b: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[16, K], [K, 16], [16, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %step = arith.constant 48 : index
  %k = tile.dim %a, 1 : !tile.view<2, bf16, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<16x16xf32>
  %sum = scf.for %i = %zero to %k step %step iter_args(%acc = %clear) -> (tensor<16x16xf32>) {
    %left = tile.load %a[%zero, %i] : !tile.view<2, bf16, global> -> tensor<16x48xbf16>
    %right = tile.load %b[%i, %zero] : !tile.view<2, bf16, global> -> tensor<48x16xbf16>
    %c = tile.dot %left, %right, %acc : tensor<16x48xbf16>, tensor<48x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %c : tensor<16x16xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// BEFORE:      nv.wait 0
// BEFORE:      nv.copy_async
// BEFORE:      nv.copy_async
// BEFORE:      nv.commit
// BEFORE-NOT:  nv.copy_async
// BEFORE:      nv.mma

// CHECK:      nv.wait 0
// CHECK-NOT:  nv.copy_async
// CHECK:      [[LEFT:%.+]] = nv.read {{%.+}}[0, 0] : !nv.shared<16x48xbf16, 32> -> tensor<16x16xbf16
// CHECK-NEXT: [[RIGHT:%.+]] = nv.read {{%.+}}[0, 0] : !nv.shared<48x16xbf16, 32> -> tensor<16x16xbf16
// CHECK-NEXT: [[FIRST:%.+]] = nv.mma [[LEFT]], [[RIGHT]], %acc
// CHECK-NEXT: nv.copy_async %a
// CHECK-NEXT: nv.copy_async %b
// CHECK-NEXT: nv.commit
// CHECK-NEXT: [[LEFT:%.+]] = nv.read {{%.+}}[0, 16] : !nv.shared<16x48xbf16, 32> -> tensor<16x32xbf16
// CHECK-NEXT: [[RIGHT:%.+]] = nv.read {{%.+}}[16, 0] : !nv.shared<48x16xbf16, 32> -> tensor<32x16xbf16
// CHECK-NEXT: %c = nv.mma [[LEFT]], [[RIGHT]], [[FIRST]]
