// RUN: tessera opt %s -p "warp-specialize{consumers=1 depth=2},insert-wgmma-waits" | filecheck %s --check-prefix=BEFORE
// RUN: tessera opt %s -p "warp-specialize{consumers=1 depth=2},insert-wgmma-waits,share-pipeline-states" | filecheck %s
// Both rings move in step: one pipeline state is left in each loop, and the one of the iteration before goes with it.
tile.func @f(%a: !tile.view<2, f16, global>, %b: !tile.view<2, f16, global>, %y: !tile.view<2, f16, global>) outputs 1 shapes [[M, 256], [256, N], [M, N]] grid ["(M + 63)//64", "(N + 63)//64"] {
  %zero = arith.constant 0 : index
  %block = arith.constant 64 : index
  %k = arith.constant 256 : index
  %down = tile.program_id 0
  %across = tile.program_id 1
  %row = arith.muli %down, %block : index
  %column = arith.muli %across, %block : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<64x64xf32>
  %sum = scf.for %i = %zero to %k step %block iter_args(%acc = %clear) -> (tensor<64x64xf32>) {
    %left = tile.load %a[%row, %i] : !tile.view<2, f16, global> -> tensor<64x64xf16>
    %right = tile.load %b[%i, %column] : !tile.view<2, f16, global> -> tensor<64x64xf16>
    %more = tile.dot %left, %right, %acc : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32> -> tensor<64x64xf32>
    scf.yield %more : tensor<64x64xf32>
  }
  %narrow = tile.ew<cast> %sum : tensor<64x64xf32> -> tensor<64x64xf16>
  tile.store %narrow, %y[%row, %column] : tensor<64x64xf16>, !tile.view<2, f16, global>
  tile.return
}

// BEFORE:     consumer {
// BEFORE:     scf.for {{.+}} iter_args({{%.+}} = {{%.+}}, {{%.+}} = {{%.+}}) -> (!pipe.pipeline_state<2>, !pipe.pipeline_state<2>)
// BEFORE:     scf.for %i_1 {{.+}} -> (!pipe.pending<64x64xf32>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>, !pipe.pipeline_state<2>)

// CHECK:      producer {
// CHECK:      scf.for %i {{.+}} iter_args([[STATE:%.+]] = {{%.+}}) -> (!pipe.pipeline_state<2>) {
// CHECK-NEXT: pipe.producer_copy %a[%row, %i], %a_ring[[[STATE]]]
// CHECK-NEXT: [[NEXT:%.+]] = pipe.advance [[STATE]]
// CHECK-NEXT: pipe.producer_copy %b[%i, %column], %b_ring[[[STATE]]]
// CHECK-NEXT: scf.yield [[NEXT]] : !pipe.pipeline_state<2>
// CHECK:      consumer {
// CHECK:      scf.for %i_1 {{.+}} iter_args(%acc = %sum, [[LAST:%.+]] = {{%.+}}) -> (!pipe.pending<64x64xf32>, !pipe.pipeline_state<2>) {
// CHECK-NEXT: [[STATE:%.+]] = pipe.advance [[LAST]]
// CHECK-NEXT: pipe.consumer_wait part %a_ring[[[STATE]]]
// CHECK-NEXT: pipe.consumer_wait %b_ring[[[STATE]]]
// CHECK:      pipe.consumer_release %a_ring[[[LAST]]]
// CHECK-NEXT: pipe.consumer_release %b_ring[[[LAST]]]
// CHECK:      scf.yield {{%.+}}, [[STATE]]
