// RUN: tessera opt %s -p canonicalize | filecheck %s
// Constants stand on the right where operands may be exchanged, and stay where they may not.
tile.func @f(%n: index, %x: f32) outputs 0 shapes [[], []] grid [1] {
  %three = arith.constant 3 : index
  %sum = arith.addi %three, %n : index
  %difference = arith.subi %three, %n : index
  tile.debug_print "scalars", %sum, %difference : index, index
  %half = arith.constant 0.5 : f32
  %c = tile.full %half : tensor<4xf32>
  %t = tile.full %x : tensor<4xf32>
  %add = tile.ew<add> %c, %t : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %sub = tile.ew<sub> %c, %t : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %lt = tile.ew<lt> %c, %t : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  %eq = tile.ew<eq> %c, %t : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  tile.debug_print "tiles", %add, %sub, %lt, %eq : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>
  tile.return
}
graph.func @g(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32>) {
  %c = graph.constant !graph.tensor<[S], f32> = [2.0]
  %max = graph.ew<max> %c, %x : !graph.tensor<[S], f32>, !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %div = graph.ew<div> %c, %x : !graph.tensor<[S], f32>, !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  graph.return %max, %div : !graph.tensor<[S], f32>, !graph.tensor<[S], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%n: index, %x: f32) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %three = arith.constant 3 : index
// CHECK-NEXT:     %sum = arith.addi %n, %three : index
// CHECK-NEXT:     %difference = arith.subi %three, %n : index
// CHECK-NEXT:     tile.debug_print "scalars", %sum, %difference : index, index
// CHECK-NEXT:     %half = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:     %c = tile.full %half : tensor<4xf32>
// CHECK-NEXT:     %t = tile.full %x : tensor<4xf32>
// CHECK-NEXT:     %add = tile.ew<add> %t, %c : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     %sub = tile.ew<sub> %c, %t : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     %lt = tile.ew<lt> %c, %t : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
// CHECK-NEXT:     %eq = tile.ew<eq> %t, %c : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
// CHECK-NEXT:     tile.debug_print "tiles", %add, %sub, %lt, %eq : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>, tensor<4xi1>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @g(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32>) {
// CHECK-NEXT:     %c = graph.constant !graph.tensor<[S], f32> = [2.0]
// CHECK-NEXT:     %max = graph.ew<max> %x, %c : !graph.tensor<[S], f32>, !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %div = graph.ew<div> %c, %x : !graph.tensor<[S], f32>, !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
// CHECK-NEXT:     graph.return %max, %div : !graph.tensor<[S], f32>, !graph.tensor<[S], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
