// RUN: tessera opt %s -p "warp-specialize{consumers=1 depth=2},insert-wgmma-waits,share-pipeline-states,warp-groups-to-nv{row_aligned=0,1,2}" | filecheck %s
// RUN: tessera opt %s -p "warp-specialize{consumers=1 depth=2},insert-wgmma-waits,warp-groups-to-nv{row_aligned=0,1}" | filecheck %s --check-prefix=PLAIN
// Producer and consumer become branches of one function: copies through tensor maps, barriers, wgmma; stores through a
// map only where rows are aligned.
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

// CHECK:      nv.func @f({{.+}} threads 256 attributes {persistent
// CHECK:      %a_ring_full = nv.mbarriers
// CHECK-NEXT: %a_ring_empty = nv.mbarriers
// CHECK:      %y_map = nv.tensor_map %y
// CHECK:      nv.mbarrier_init %a_ring_full, 1
// CHECK:      nv.barrier
// CHECK:      nv.mbarrier_wait %a_ring_empty
// CHECK-NEXT: nv.mbarrier_expect %a_ring_full[{{%.+}}], 16384
// CHECK:      nv.tma_load %a_map
// CHECK:      nv.tma_load %b_map
// CHECK:      } else {
// CHECK:      nv.mbarrier_wait %a_ring_full
// CHECK:      nv.wgmma {{%.+}}, {{%.+}} : !nv.shared
// CHECK:      [[NEXT:%.+]] = nv.wgmma {{%.+}}, {{%.+}} onto %acc
// CHECK-NEXT: nv.wgmma_wait 1
// CHECK-NEXT: nv.mbarrier_arrive %a_ring_empty
// CHECK:      %sum_1 = nv.wgmma_wait 0, %sum
// CHECK:      nv.stmatrix
// CHECK:      nv.tma_store {{%.+}}, %y_map

// PLAIN-NOT:  %y_map
// PLAIN:      tile.store %narrow, %y
