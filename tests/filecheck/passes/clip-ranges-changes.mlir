// RUN: tessera opt %s -p clip-ranges | filecheck %s
// Every iteration counts up: none may be left out.
tile.func @f(%x: !tile.view<2, f32, global>, %row: index, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [], [4, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %n = tile.dim %x, 1 : !tile.view<2, f32, global>
  %one = arith.constant 1.0 : f32
  %ones = tile.full %one : tensor<4x8xf32>
  %sum = scf.for %i = %zero to %n step %eight iter_args(%acc = %ones) -> (tensor<4x8xf32>) {
    %down = tile.iota %row, 0 : tensor<4x8xi64>
    %across = tile.iota %i, 1 : tensor<4x8xi64>
    %mask = tile.ew<ge> %down, %across : tensor<4x8xi64>, tensor<4x8xi64> -> tensor<4x8xi1>
    %b = tile.ew<select> %mask, %acc, %ones : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %next = tile.ew<add> %b, %ones : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    scf.yield %next : tensor<4x8xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<4x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: scf.for %i = %zero to %n step %eight
