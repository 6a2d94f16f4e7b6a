// RUN: tessera opt %s -p pingpong-busy-consumers | filecheck %s
// RUN: tessera opt %s -p pingpong-busy-consumers{consumers=3} | filecheck %s --check-prefix=MANY
// Two consumers take turns where schedulers have more to do than the unit for functions; three always do.
!tile = tensor<16x16xf32>
!pending = !pipe.pending<16x16xf32>
tile.func @f(%n: index) outputs 0 shapes [[]] grid [4] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %nothing = arith.constant 0.0 : f32
  pipe.warp_specialize 2 producer {
    %none = arith.constant 0 : index
  } consumer {
    %a = tile.full %nothing : !tile
    %functions = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> (!tile) {
      %s = pipe.dot_start %p, %a, %a : !tile, !tile, !tile -> !pending
      %scores = pipe.dot_wait %s younger 0 : !pending -> !tile
      %q = tile.ew<exp2> %scores : !tile -> !tile
      scf.yield %q : !tile
    }
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> (!tile) {
      %s = pipe.dot_start %p, %a, %a : !tile, !tile, !tile -> !pending
      %scores = pipe.dot_wait %s younger 0 : !pending -> !tile
      %q = tile.ew<add> %scores, %a : !tile, !tile -> !tile
      scf.yield %q : !tile
    }
  }
  tile.return
}

// CHECK:      %functions = scf.for
// CHECK-NOT:  pipe.pingpong_wait
// CHECK:      %sums = scf.for
// CHECK-NEXT: pipe.pingpong_wait
// CHECK-NEXT: pipe.dot_start
// CHECK-NEXT: pipe.pingpong_arrive
// CHECK-NEXT: pipe.dot_wait

// MANY:       %functions = scf.for
// MANY-NEXT:  pipe.pingpong_wait
// MANY:       %sums = scf.for
// MANY-NEXT:  pipe.pingpong_wait
