// RUN: tessera opt %s -p software-pipeline-dots | filecheck %s
// The first dot needs the accumulator of the iteration before: the loop stays as it is.
tile.func @f(%w: !tile.view<2, f32, global>, %n: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[N, 8], [], [8, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<8x8xf32>
  %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %clear) -> (tensor<8x8xf32>) {
    %a = tile.load %w[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x8xf32>
    %b = tile.dot %acc, %a, %clear : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %c = tile.ew<tanh> %b : tensor<8x8xf32> -> tensor<8x8xf32>
    %d = tile.dot %c, %a, %acc : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    scf.yield %d : tensor<8x8xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK-NOT: scf.if
// CHECK:         %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %clear) -> (tensor<8x8xf32>) {
// CHECK-NEXT:      %a = tile.load
// CHECK-NEXT:      %b = tile.dot %acc, %a, %clear
// CHECK-NEXT:      %c = tile.ew<tanh> %b
// CHECK-NEXT:      %d = tile.dot %c, %a, %acc
// CHECK-NEXT:      scf.yield %d
