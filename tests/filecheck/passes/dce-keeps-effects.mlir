// RUN: tessera opt %s -p dce | filecheck %s
// Draws, writes, collectives, output and checks are noticed by others; a read of state is not.
graph.state @s : !graph.tensor<[], f32>
graph.func @noisy() effects [random] {
  %a = graph.random<uniform> : !graph.tensor<[4], f32>
  graph.return
}
graph.func @f(%x: !graph.tensor<[], f32>) effects [random, io, "state(s)", "collective(data)"] {
  %drawn = graph.random<normal> : !graph.tensor<[4], f32>
  %read = graph.state_read @s : !graph.tensor<[], f32>
  graph.state_write @s, %x : !graph.tensor<[], f32>
  %sum = graph.all_reduce<sum> %x over "data" : !graph.tensor<[], f32> -> !graph.tensor<[], f32>
  graph.print "x", %x : !graph.tensor<[], f32>
  graph.call @noisy() : () -> ()
  graph.return
}
tile.func @k(%x: !tile.view<1, f32, global>, %flag: i1) outputs 0 shapes [[N], []] grid [1] {
  %i = tile.program_id 0
  %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.store %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.atomic<max> %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.assert %flag, "holds" : i1
  tile.debug_print "i", %i : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.state @s : !graph.tensor<[], f32>
// CHECK-NEXT:   graph.func @noisy() effects [random] {
// CHECK-NEXT:     %a = graph.random<uniform> : !graph.tensor<[4], f32>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[], f32>) effects [random, io, "state(s)", "collective(data)"] {
// CHECK-NEXT:     %drawn = graph.random<normal> : !graph.tensor<[4], f32>
// CHECK-NEXT:     graph.state_write @s, %x : !graph.tensor<[], f32>
// CHECK-NEXT:     %sum = graph.all_reduce<sum> %x over "data" : !graph.tensor<[], f32> -> !graph.tensor<[], f32>
// CHECK-NEXT:     graph.print "x", %x : !graph.tensor<[], f32>
// CHECK-NEXT:     graph.call @noisy() : () -> ()
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @k(%x: !tile.view<1, f32, global>, %flag: i1) outputs 0 shapes [[N], []] grid [1] {
// CHECK-NEXT:     %i = tile.program_id 0
// CHECK-NEXT:     %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.store %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.atomic<max> %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.assert %flag, "holds" : i1
// CHECK-NEXT:     tile.debug_print "i", %i : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
