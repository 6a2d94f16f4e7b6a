// RUN: tessera opt %s -p tile-to-nv{warps=2},order-memory | filecheck %s
// Threads wait before one stores what another may have yet to load; each stores its own elements again without waiting.
tile.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[M, 64]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
  tile.store %a, %x[%zero, %zero] : tensor<8x64xf32>, !tile.view<2, f32, global>
  tile.store %a, %x[%eight, %zero] : tensor<8x64xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:      %a = tile.load %x[%zero, %zero]
// CHECK-NEXT: tile.store %a, %x[%zero, %zero]
// CHECK-NEXT: nv.barrier
// CHECK-NEXT: tile.store %a, %x[%eight, %zero]
// CHECK-NEXT: nv.return
