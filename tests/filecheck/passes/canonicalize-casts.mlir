// RUN: tessera opt %s -p canonicalize | filecheck %s
// A cast to the same type goes, unless a policy makes it scale or clamp; a selection between equals is no choice.
tile.func @f(%x: f32, %c: i1) outputs 0 shapes [[], []] grid [1] {
  %t = tile.full %x : tensor<4xf32>
  %flags = tile.full %c : tensor<4xi1>
  %same = tile.ew<cast> %t : tensor<4xf32> -> tensor<4xf32>
  %scaled = tile.ew<cast> %t policy <loss_scale(4)> : tensor<4xf32> -> tensor<4xf32>
  %chosen = tile.ew<select> %flags, %t, %t : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %narrow = tile.ew<cast> %t : tensor<4xf32> -> tensor<4xbf16>
  tile.debug_print "t, scaled, t, narrow", %same, %scaled, %chosen, %narrow : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
  tile.return
}
graph.func @g(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32, loss_scale(4)>) {
  %same = graph.ew<cast> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %scaled = graph.ew<cast> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32, loss_scale(4)>
  graph.return %same, %scaled : !graph.tensor<[S], f32>, !graph.tensor<[S], f32, loss_scale(4)>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: f32, %c: i1) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %t = tile.full %x : tensor<4xf32>
// CHECK-NEXT:     %scaled = tile.ew<cast> %t policy <loss_scale(4)> : tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     %narrow = tile.ew<cast> %t : tensor<4xf32> -> tensor<4xbf16>
// CHECK-NEXT:     tile.debug_print "t, scaled, t, narrow", %t, %scaled, %t, %narrow : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @g(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32, loss_scale(4)>) {
// CHECK-NEXT:     %scaled = graph.ew<cast> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32, loss_scale(4)>
// CHECK-NEXT:     graph.return %x, %scaled : !graph.tensor<[S], f32>, !graph.tensor<[S], f32, loss_scale(4)>
// CHECK-NEXT:   }
// CHECK-NEXT: }
