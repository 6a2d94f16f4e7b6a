// RUN: tessera opt %s -p canonicalize | filecheck %s
// A loop that runs once is its body, with its first counter and its first values.
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  %start = arith.constant 3 : index
  %stop = arith.constant 5 : index
  %step = arith.constant 2 : index
  %last = scf.for %i = %start to %stop step %step iter_args(%s = %n) -> (index) {
    %next = arith.addi %s, %i : index
    scf.yield %next : index
  }
  %t = tile.load %x[%last] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.store %t, %x[%start] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
tile.func @twice(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  %start = arith.constant 3 : index
  %stop = arith.constant 6 : index
  %step = arith.constant 2 : index
  %last = scf.for %i = %start to %stop step %step iter_args(%s = %n) -> (index) {
    %next = arith.addi %s, %i : index
    scf.yield %next : index
  }
  %t = tile.load %x[%last] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.store %t, %x[%start] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:      tile.func @f(%[[X:.*]]: !tile.view<1, f32, global>, %[[N:.*]]: index)
// CHECK:      %[[START:.*]] = arith.constant 3 : index
// CHECK-NOT:  scf.for
// CHECK:      %[[NEXT:.*]] = arith.addi %[[N]], %[[START]] : index
// CHECK:      tile.load %[[X]][%[[NEXT]]]
// CHECK:      tile.func @twice
// CHECK:      scf.for
