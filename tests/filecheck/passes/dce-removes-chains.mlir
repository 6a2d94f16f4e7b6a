// RUN: tessera opt %s -p dce | filecheck %s
// What only a dead op used is dead, too; reads may go, and so may calls without effects.
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %i = tile.program_id 0
  %n = tile.dim %x, 0 : !tile.view<1, f32, global>
  %t = tile.load %x[%n] : !tile.view<1, f32, global> -> tensor<4xf32>
  %e = tile.ew<exp> %t : tensor<4xf32> -> tensor<4xf32>
  %s = tile.reduce<sum> %e, 0 : tensor<4xf32> -> tensor<f32>
  tile.return
}
graph.func @pure(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) {
  graph.return %x : !graph.tensor<[S], f32>
}
graph.func @g(%x: !graph.tensor<[S], f32>) {
  %a = graph.ew<exp> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %b = graph.call @pure(%a) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @pure(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) {
// CHECK-NEXT:     graph.return %x : !graph.tensor<[S], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @g(%x: !graph.tensor<[S], f32>) {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
