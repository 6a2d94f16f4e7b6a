// RUN: tessera opt %s -p "warp-specialize{consumers=1 depth=2},insert-wgmma-waits,defer-mapped-stores{spare=16 row_aligned=0,1,2}" | filecheck %s
// RUN: tessera opt %s -p "warp-specialize{consumers=1 depth=2},insert-wgmma-waits,defer-mapped-stores{spare=16 row_aligned=0,1}" | filecheck %s --check-prefix=NOW
// RUN: tessera opt %s -p "warp-specialize{consumers=1 depth=2},insert-wgmma-waits,defer-mapped-stores{spare=15 row_aligned=0,1,2}" | filecheck %s --check-prefix=NOW
// A store waits for the next program instance's first dot if it has a tensor map, and a thread has registers to keep it.
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

// CHECK:      consumer {
// CHECK:      scf.for {{.+}} iter_args({{.+}}, %narrow = {{%.+}}, [[ROW:%.+]] = {{%.+}}, [[COLUMN:%.+]] = {{%.+}}, [[ANY:%.+]] = {{%.+}})
// CHECK:      pipe.dot_start
// CHECK-NEXT: scf.if [[ANY]] {
// CHECK-NEXT: tile.store %narrow, %y[[[ROW]], [[COLUMN]]]
// CHECK:      pipe.dot_wait
// CHECK:      %narrow_1 = tile.ew<cast>
// CHECK-NOT:  tile.store
// CHECK:      scf.yield
// CHECK:      scf.if
// CHECK-NEXT: tile.store

// NOW-NOT:  tile.store
// NOW:      pipe.dot_wait
// NOW:      tile.store %narrow, %y[{{%.+}}, %column_1]
// NOW-NOT:  tile.store
