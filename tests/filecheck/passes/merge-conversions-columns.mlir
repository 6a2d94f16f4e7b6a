// RUN: tessera opt %s -p tile-to-nv{warps=2} | filecheck %s --check-prefix=BEFORE
// RUN: tessera opt %s -p tile-to-nv{warps=2},merge-conversions | filecheck %s
// Sums across warps go through shared memory: they come back in the layout that is stored, and need no conversion.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[32, 64], [64]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<32x64xf32>
  %sum = tile.reduce<sum> %a, 0 : tensor<32x64xf32> -> tensor<64xf32>
  tile.store %sum, %y[%zero] : tensor<64xf32>, !tile.view<1, f32, global>
  tile.return
}
