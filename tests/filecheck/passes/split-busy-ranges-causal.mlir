// RUN: tessera opt %s -p split-busy-ranges | filecheck %s
// RUN: tessera opt %s -p split-busy-ranges{consumers=3} | filecheck %s --check-prefix=MANY
// The iterations without a mask are a loop of their own. It ends where a consumer's rows say; where consumers take turns,
// as three do, it ends for all of them where that of the first one does.
tile.func @f(%k: !tile.view<2, f32, global>, %row: index, %n: index) outputs 0 shapes [[N, 16], [], []] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %nothing = arith.constant 0.0 : f32
  pipe.warp_specialize 2 producer {
    %none = arith.constant 0 : index
  } consumer {
    %id = pipe.consumer_id
    %sixteen = arith.constant 16 : index
    %later = arith.muli %id, %sixteen : index
    %own = arith.addi %row, %later : index
    %clear = tile.full %nothing : tensor<16x8xf32>
    %q = tile.full %nothing : tensor<16x16xf32>
    %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %clear) -> (tensor<16x8xf32>) {
      %b = tile.load %k[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
      %c = tile.trans %b, [1, 0] : tensor<8x16xf32> -> tensor<16x8xf32>
      %d = tile.dot %q, %c, %clear : tensor<16x16xf32>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
      %down = tile.iota %own, 0 : tensor<16x8xi64>
      %across = tile.iota %i, 1 : tensor<16x8xi64>
      %mask = tile.ew<ge> %down, %across : tensor<16x8xi64>, tensor<16x8xi64> -> tensor<16x8xi1>
      %e = tile.ew<select> %mask, %d, %clear : tensor<16x8xi1>, tensor<16x8xf32>, tensor<16x8xf32> -> tensor<16x8xf32>
      %next = tile.ew<exp2> %e : tensor<16x8xf32> -> tensor<16x8xf32>
      scf.yield %next : tensor<16x8xf32>
    }
  }
  tile.return
}

// CHECK:      %q = tile.full
// CHECK:      [[OWN:%.+]] = arith.addi %row, {{%.+}} : index
// CHECK-NEXT: [[LESS:%.+]] = arith.constant -6 : index
// CHECK-NEXT: [[FULL:%.+]] = arith.addi [[OWN]], [[LESS]] : index
// CHECK-NEXT: [[END:%.+]] = arith.minsi %n, [[FULL]] : index
// CHECK:      %sum = scf.for %i = %zero to [[END]] step %eight
// CHECK-NOT:  tile.ew<select>
// CHECK:      %next = tile.ew<exp2> %d
// CHECK-NOT:  tile.all_rows
// CHECK:      %sum_1 = scf.for %i_1 = {{%.+}} to %n step %eight
// CHECK:      tile.ew<select> %mask_1

// MANY:       [[LESS:%.+]] = arith.constant -6 : index
// MANY-NEXT:  [[FULL:%.+]] = arith.addi %row, [[LESS]] : index
// MANY-NEXT:  [[END:%.+]] = arith.minsi %n, [[FULL]] : index
// MANY:       %sum = scf.for %i = %zero to [[END]] step %eight
// MANY-NOT:   tile.ew<select>
// MANY:       } {tile.all_rows}
// MANY-NEXT:  %sum_1 = scf.for %i_1 = {{%.+}} to %n step %eight
// MANY:       tile.ew<select> %mask_1
