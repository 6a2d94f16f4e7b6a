// RUN: tessera opt %s -p make-async{depth=2},unroll-rings,tile-to-nv{warps=1},rotate-loops | filecheck %s
// Loops in which something else needs the product of its own iteration stay as they are.
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
    %half = tile.ew<add> %c, %clear : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %half : tensor<16x16xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:      scf.for {{%.+}} iter_args({{%.+}} = %clear) -> (tensor<16x16xf32
// CHECK:      nv.wait 0
// CHECK:      [[A:%.+]] = nv.read {{%.+}} : !nv.shared<16x48xbf16, 32> -> tensor<16x48xbf16
// CHECK:      [[B:%.+]] = nv.read {{%.+}} : !nv.shared<48x16xbf16, 32> -> tensor<48x16xbf16
// CHECK:      [[C:%.+]] = nv.mma [[A]], [[B]]
// CHECK-NEXT: tile.ew<add> [[C]]
