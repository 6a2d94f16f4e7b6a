// RUN: tessera opt %s -p make-async{depth=2},unroll-rings | filecheck %s
// A loop through a ring of two slots does two iterations at a time, with constant slots; a rest of one runs behind it.
tile.func @f(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[16, K], [K, 16], [16, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %k = tile.dim %a, 1 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<16x16xf32>
  %sum = scf.for %i = %zero to %k step %eight iter_args(%acc = %clear) -> (tensor<16x16xf32>) {
    %left = tile.load %a[%zero, %i] : !tile.view<2, f32, global> -> tensor<16x8xf32>
    %right = tile.load %b[%i, %zero] : !tile.view<2, f32, global> -> tensor<8x16xf32>
    %c = tile.dot %left, %right, %acc : tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %c : tensor<16x16xf32>
  }
  tile.store %sum, %y[%zero, %zero] : tensor<16x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:      [[ROUNDS:%.+]] = arith.floordivsi
// CHECK-NEXT: [[STRIDE:%.+]] = arith.muli %eight, {{%.+}} : index
// CHECK-NEXT: [[DONE:%.+]] = arith.muli [[ROUNDS]], [[STRIDE]] : index
// CHECK-NEXT: [[MIDDLE:%.+]] = arith.addi %zero, [[DONE]] : index
// CHECK-NEXT: %sum = scf.for {{%.+}} = %zero to [[MIDDLE]] step [[STRIDE]]
// CHECK-NEXT: [[FIRST:%.+]] = arith.constant 0 : index
// CHECK:      %left = pipe.get %0[[[FIRST]]]
// CHECK:      %c = tile.dot %left, %right
// CHECK:      arith.muli %eight
// CHECK-NEXT: arith.addi
// CHECK-NEXT: [[SECOND:%.+]] = arith.constant 1 : index
// CHECK-NEXT: pipe.wait 0
// CHECK:      %left_1 = pipe.get %0[[[SECOND]]]
// CHECK:      %c_1 = tile.dot %left_1, %right_1, %c
// CHECK:      scf.yield %c_1 : tensor<16x16xf32>
// CHECK:      {{%.+, %.+}} = scf.for %i = [[MIDDLE]] to %k step %eight iter_args(%acc = %sum, [[SLOT:%.+]] = {{%.+}})
// CHECK:      %left_2 = pipe.get %0[[[SLOT]]]
