// RUN: tessera opt %s -p "warp-specialize{consumers=2 depth=2},insert-wgmma-waits,prefetch-into-registers{spare=2}" | filecheck %s
// RUN: tessera opt %s -p "warp-specialize{consumers=2 depth=2},insert-wgmma-waits,prefetch-into-registers{spare=1}" | filecheck %s --check-prefix=LATE
// The bias is loaded before the wait for the accumulators if a thread has registers for its part of it.
tile.func @f(%a: !tile.view<2, f16, global>, %b: !tile.view<2, f16, global>, %bias: !tile.view<1, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 64], [64, N], [N], [M, N]] grid [4, 3] {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %k = arith.constant 64 : index
  %rows = arith.constant 32 : index
  %columns = arith.constant 8 : index
  %down = tile.program_id 0
  %across = tile.program_id 1
  %row = arith.muli %down, %rows : index
  %column = arith.muli %across, %columns : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<32x8xf32>
  %sum = scf.for %i = %zero to %k step %step iter_args(%acc = %clear) -> (tensor<32x8xf32>) {
    %left = tile.load %a[%row, %i] : !tile.view<2, f16, global> -> tensor<32x16xf16>
    %right = tile.load %b[%i, %column] : !tile.view<2, f16, global> -> tensor<16x8xf16>
    %more = tile.dot %left, %right, %acc : tensor<32x16xf16>, tensor<16x8xf16>, tensor<32x8xf32> -> tensor<32x8xf32>
    scf.yield %more : tensor<32x8xf32>
  }
  %at = arith.addi %column, %zero : index
  %one = tile.load %bias[%at] : !tile.view<1, f32, global> -> tensor<8xf32>
  %line = tile.expand %one, 0 : tensor<8xf32> -> tensor<1x8xf32>
  %all = tile.broadcast %line : tensor<1x8xf32> -> tensor<32x8xf32>
  %result = tile.ew<add> %sum, %all : tensor<32x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  tile.store %result, %y[%row, %column] : tensor<32x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:      %one = tile.load %bias
// CHECK-NEXT: {{%.+}} = pipe.dot_wait

// LATE-NOT:   tile.load
// LATE:       pipe.dot_wait
// LATE:       %one = tile.load %bias
