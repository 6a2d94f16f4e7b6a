// RUN: tessera opt %s -p canonicalize | filecheck %s
// Transposes compose, reshapes follow the last one, and what changes nothing goes.
tile.func @f(%x: f32) outputs 0 shapes [[]] grid [1] {
  %t = tile.full %x : tensor<2x3x5xf32>
  %once = tile.trans %t, [2, 0, 1] : tensor<2x3x5xf32> -> tensor<5x2x3xf32>
  %twice = tile.trans %once, [2, 1, 0] : tensor<5x2x3xf32> -> tensor<3x2x5xf32>
  %back = tile.trans %once, [1, 2, 0] : tensor<5x2x3xf32> -> tensor<2x3x5xf32>
  %same = tile.broadcast %back : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  tile.debug_print "composed, t", %twice, %same : tensor<3x2x5xf32>, tensor<2x3x5xf32>
  tile.return
}
graph.func @g(%x: !graph.tensor<[S, 6], f32>) -> (!graph.tensor<[3, S, 2], f32>, !graph.tensor<[S, 6], f32>, !graph.tensor<[S, 6], f32>, !graph.tensor<[S, 6], f32>) {
  %flat = graph.reshape %x : !graph.tensor<[S, 6], f32> -> !graph.tensor<["6*S"], f32>
  %cube = graph.reshape %flat : !graph.tensor<["6*S"], f32> -> !graph.tensor<[3, S, 2], f32>
  %again = graph.reshape %cube : !graph.tensor<[3, S, 2], f32> -> !graph.tensor<[S, 6], f32>
  %transposed = graph.transpose %x, [1, 0] : !graph.tensor<[S, 6], f32> -> !graph.tensor<[6, S], f32>
  %returned = graph.transpose %transposed, [1, 0] : !graph.tensor<[6, S], f32> -> !graph.tensor<[S, 6], f32>
  %wide = graph.broadcast %x : !graph.tensor<[S, 6], f32> -> !graph.tensor<[S, 6], f32>
  graph.return %cube, %again, %returned, %wide : !graph.tensor<[3, S, 2], f32>, !graph.tensor<[S, 6], f32>, !graph.tensor<[S, 6], f32>, !graph.tensor<[S, 6], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: f32) outputs 0 shapes [[]] grid [1] {
// CHECK-NEXT:     %t = tile.full %x : tensor<2x3x5xf32>
// CHECK-NEXT:     %twice = tile.trans %t, [1, 0, 2] : tensor<2x3x5xf32> -> tensor<3x2x5xf32>
// CHECK-NEXT:     tile.debug_print "composed, t", %twice, %t : tensor<3x2x5xf32>, tensor<2x3x5xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @g(%x: !graph.tensor<[S, 6], f32>) -> (!graph.tensor<[3, S, 2], f32>, !graph.tensor<[S, 6], f32>, !graph.tensor<[S, 6], f32>, !graph.tensor<[S, 6], f32>) {
// CHECK-NEXT:     %cube = graph.reshape %x : !graph.tensor<[S, 6], f32> -> !graph.tensor<[3, S, 2], f32>
// CHECK-NEXT:     graph.return %cube, %x, %x, %x : !graph.tensor<[3, S, 2], f32>, !graph.tensor<[S, 6], f32>, !graph.tensor<[S, 6], f32>, !graph.tensor<[S, 6], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
