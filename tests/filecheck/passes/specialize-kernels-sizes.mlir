// RUN: tessera opt %s -p specialize-kernels,canonicalize | filecheck %s
// Sizes that a call knows become constants in the signature of a copy, and fold there.
tile.func @k(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[M, N], [M]] grid ["(M + 15)//16"] {
  %m = tile.dim %x, 0 : !tile.view<2, f32, global>
  %n = tile.dim %x, 1 : !tile.view<2, f32, global>
  tile.debug_print "m, n", %m, %n : index, index
  tile.return
}
graph.func @f(%x: !graph.tensor<[40, S], f32>) -> (!graph.tensor<[40], f32>) effects [io] {
  %y = graph.call_kernel @k(%x) : (!graph.tensor<[40, S], f32>) -> !graph.tensor<[40], f32>
  graph.return %y : !graph.tensor<[40], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @k_M40(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[40, N], [40]] grid [3] {
// CHECK-NEXT:     %m = arith.constant 40 : index
// CHECK-NEXT:     %n = tile.dim %x, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     tile.debug_print "m, n", %m, %n : index, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[40, S], f32>) -> (!graph.tensor<[40], f32>) effects [io] {
// CHECK-NEXT:     %y = graph.call_kernel @k_M40(%x) : (!graph.tensor<[40, S], f32>) -> !graph.tensor<[40], f32>
// CHECK-NEXT:     graph.return %y : !graph.tensor<[40], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
