// RUN: tessera opt %s -p vote-before-max | filecheck %s
// Threads vote on the maxima of what each holds; those that share a row exchange theirs in the branch, rarely.
!tile = tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
!rows = tensor<64xf32, #nv.layout<[4:_, 8:0*1, 4:0*16], [2:0*8]>>
!flags = tensor<64xi1, #nv.layout<[4:_, 8:0*1, 4:0*16], [2:0*8]>>
nv.func @f(%z: f32, %y: !tile.view<1, f32, global>) outputs 1 shapes [[], [64]] grid [1] threads 128 {
  %zero = arith.constant 0 : index
  %scores = tile.full %z : !tile
  %limit = tile.full %z : !rows
  %most = tile.reduce<max> %scores, 1 : !tile -> !rows
  %rises = tile.ew<gt> %most, %limit : !rows, !rows -> !flags
  %any = nv.any %rises : !flags
  %top = scf.if %any -> (!rows) {
    %higher = tile.ew<select> %rises, %most, %limit : !flags, !rows, !rows -> !rows
    scf.yield %higher : !rows
  } else {
    scf.yield %limit : !rows
  }
  tile.store %top, %y[%zero] : !rows, !tile.view<1, f32, global>
  nv.return
}

// CHECK:      [[OWN:%.+]] = nv.partial<max> %scores, 1
// CHECK-NEXT: [[COLUMN:%.+]] = tile.expand %limit, 1
// CHECK-NEXT: [[LIMITS:%.+]] = tile.broadcast [[COLUMN]]
// CHECK-NEXT: [[ABOVE:%.+]] = tile.ew<gt> [[OWN]], [[LIMITS]]
// CHECK-NEXT: [[ANY:%.+]] = nv.any [[ABOVE]]
// CHECK-NEXT: scf.if [[ANY]]
// CHECK-NEXT: [[MOST:%.+]] = tile.reduce<max> [[OWN]], 1
// CHECK-NEXT: %rises = tile.ew<gt> [[MOST]], %limit
// CHECK-NEXT: tile.ew<select> %rises, [[MOST]], %limit
