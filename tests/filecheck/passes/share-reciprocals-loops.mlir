// RUN: tessera opt %s -p share-reciprocals | filecheck %s
// Sigmoids in a loop that keep the tensor cores waiting share reciprocals; the one behind the loop does not.
tile.func @f(%q: !tile.view<2, f16, global>, %k: !tile.view<2, f16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[64, 16], [16, N], [64, 64]] grid [1] {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %n = tile.dim %k, 1 : !tile.view<2, f16, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<64x64xf32>
  %left = tile.load %q[%zero, %zero] : !tile.view<2, f16, global> -> tensor<64x16xf16>
  %sum = scf.for %i = %zero to %n step %step iter_args(%acc = %clear) -> (tensor<64x64xf32>) {
    %right = tile.load %k[%zero, %i] : !tile.view<2, f16, global> -> tensor<16x64xf16>
    %c = tile.dot %left, %right, %clear : tensor<64x16xf16>, tensor<16x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    %inside = tile.ew<sigmoid> %c {approximate} : tensor<64x64xf32> -> tensor<64x64xf32>
    %next = tile.ew<add> %acc, %inside : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %behind = tile.ew<sigmoid> %sum {approximate} : tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %behind, %y[%zero, %zero] : tensor<64x64xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: %inside = tile.ew<sigmoid> %c {approximate, together}
// CHECK: %behind = tile.ew<sigmoid> %sum {approximate} :
