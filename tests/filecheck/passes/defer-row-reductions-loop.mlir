// RUN: tessera opt %s -p defer-row-reductions | filecheck %s
// Each thread adds up its own elements in the loop; threads that share a row add their sums once, behind it.
!tile = tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
!rows = tensor<64xf32, #nv.layout<[4:_, 8:0*1, 4:0*16], [2:0*8]>>
nv.func @f(%n: index, %x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[], [64, N], [64]] grid [1] threads 128 {
  %zero = arith.constant 0 : index
  %step = arith.constant 64 : index
  %nothing = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %clear = tile.full %nothing : !rows
  %factor = tile.full %half : !rows
  %total = scf.for %i = %zero to %n step %step iter_args(%sum = %clear) -> (!rows) {
    %weights = tile.load %x[%zero, %i] : !tile.view<2, f32, global> -> !tile
    %kept = tile.ew<mul> %sum, %factor : !rows, !rows -> !rows
    %more = tile.reduce<sum> %weights, 1 : !tile -> !rows
    %next = tile.ew<add> %kept, %more : !rows, !rows -> !rows
    scf.yield %next : !rows
  }
  tile.store %total, %y[%zero] : !rows, !tile.view<1, f32, global>
  nv.return
}

// CHECK:      [[CLEAR:%.+]] = tile.full %nothing : tensor<64x4xf32
// CHECK-NEXT: %total = scf.for {{.+}} iter_args(%sum = [[CLEAR]])
// CHECK:      [[COLUMN:%.+]] = tile.expand %factor, 1
// CHECK-NEXT: [[FACTORS:%.+]] = tile.broadcast [[COLUMN]]
// CHECK-NEXT: %kept = tile.ew<mul> %sum, [[FACTORS]]
// CHECK-NEXT: [[OWN:%.+]] = nv.partial<sum> %weights, 1
// CHECK-NEXT: %next = tile.ew<add> %kept, [[OWN]]
// CHECK-NEXT: scf.yield %next
// CHECK-NEXT: }
// CHECK-NEXT: [[TOTAL:%.+]] = tile.reduce<sum> %total, 1
// CHECK-NEXT: tile.store [[TOTAL]], %y[%zero]
