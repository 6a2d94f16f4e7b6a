// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// What has effects stays with the host, in order; algebra around it goes into regions.
graph.state @s : !graph.tensor<[4], f32>
graph.func @f() -> (!graph.tensor<[4], f32>) effects [random, io, "state(s)", "collective(data)"] {
  %noise = graph.random<normal> : !graph.tensor<[4], f32>
  %old = graph.state_read @s : !graph.tensor<[4], f32>
  %new = graph.ew<add> %old, %noise : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.state_write @s, %new : !graph.tensor<[4], f32>
  graph.print "new", %new : !graph.tensor<[4], f32>
  %sum = graph.all_reduce<sum> %new over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  %half = graph.ew<neg> %sum : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return %half : !graph.tensor<[4], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.state @s : !graph.tensor<[4], f32>
// CHECK-NEXT:   graph.func @f() -> (!graph.tensor<[4], f32>) effects [random, io, "state(s)", "collective(data)"] {
// CHECK-NEXT:     %noise = graph.random<normal> : !graph.tensor<[4], f32>
// CHECK-NEXT:     %old = graph.state_read @s : !graph.tensor<[4], f32>
// CHECK-NEXT:     %new = schedule.region<pointwise> <block = [4]> (%old_1 : !graph.tensor<[4], f32> = %old, %noise_1 : !graph.tensor<[4], f32> = %noise) -> (!graph.tensor<[4], f32>) {
// CHECK-NEXT:       %new_1 = graph.ew<add> %old_1, %noise_1 : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
// CHECK-NEXT:       schedule.yield %new_1 : !graph.tensor<[4], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.state_write @s, %new : !graph.tensor<[4], f32>
// CHECK-NEXT:     graph.print "new", %new : !graph.tensor<[4], f32>
// CHECK-NEXT:     %sum = graph.all_reduce<sum> %new over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
// CHECK-NEXT:     %half = schedule.region<pointwise> <block = [4]> (%sum_1 : !graph.tensor<[4], f32> = %sum) -> (!graph.tensor<[4], f32>) {
// CHECK-NEXT:       %half_1 = graph.ew<neg> %sum_1 : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
// CHECK-NEXT:       schedule.yield %half_1 : !graph.tensor<[4], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %half : !graph.tensor<[4], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
