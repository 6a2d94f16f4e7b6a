// RUN: tessera opt %s -p pingpong-consumers | filecheck %s
// Of three loops the first is as long for all consumers; the second is as long as a consumer's rows say, and the third only
// multiplies.
// CHECK:      consumer
// CHECK:      scf.for
// CHECK:      pipe.pingpong_wait
// CHECK-NEXT: pipe.dot_start
// CHECK-NEXT: pipe.dot_start
// CHECK-NEXT: pipe.pingpong_arrive
// CHECK-NEXT: pipe.dot_wait
// CHECK:      scf.for
// CHECK-NOT:  pipe.pingpong_wait
// CHECK:      scf.for
// CHECK-NOT:  pipe.pingpong_wait
// CHECK:      tile.return
!pending = !pipe.pending<16x16xf32>
tile.func @f(%n: index) outputs 0 shapes [[]] grid [4] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %nothing = arith.constant 0.0 : f32
  pipe.warp_specialize 2 producer {
    %none = arith.constant 0 : index
  } consumer {
    %agent = pipe.consumer_id
    %more = arith.addi %n, %agent : index
    %a = tile.full %nothing : tensor<16x16xf32>
    %all = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> (tensor<16x16xf32>) {
      %s = pipe.dot_start %a, %a, %a : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> !pending
      %t = pipe.dot_start %p, %a, %a : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> !pending
      %scores = pipe.dot_wait %s younger 1 : !pending -> tensor<16x16xf32>
      %q = tile.ew<exp> %scores : tensor<16x16xf32> -> tensor<16x16xf32>
      %sums = pipe.dot_wait %t younger 0 : !pending -> tensor<16x16xf32>
      scf.yield %q : tensor<16x16xf32>
    }
    %own = scf.for %i = %c0 to %more step %c1 iter_args(%p = %a) -> (tensor<16x16xf32>) {
      %s = pipe.dot_start %p, %a, %a : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> !pending
      %scores = pipe.dot_wait %s younger 0 : !pending -> tensor<16x16xf32>
      %q = tile.ew<exp> %scores : tensor<16x16xf32> -> tensor<16x16xf32>
      scf.yield %q : tensor<16x16xf32>
    }
    %multiplied = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> (tensor<16x16xf32>) {
      %s = pipe.dot_start %p, %a, %a : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32> -> !pending
      %scores = pipe.dot_wait %s younger 0 : !pending -> tensor<16x16xf32>
      scf.yield %scores : tensor<16x16xf32>
    }
  }
  tile.return
}
