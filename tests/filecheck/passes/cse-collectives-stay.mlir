// RUN: tessera opt %s -p cse | filecheck %s
// Every rank must reach the same collectives: none is left out, equal or not.
graph.func @f(%x: !graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[4], f32>) effects ["collective(data)"] {
  %a = graph.all_reduce<sum> %x over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  %b = graph.all_reduce<sum> %x over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return %a, %b : !graph.tensor<[4], f32>, !graph.tensor<[4], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[4], f32>) effects ["collective(data)"] {
// CHECK-NEXT:     %a = graph.all_reduce<sum> %x over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
// CHECK-NEXT:     %b = graph.all_reduce<sum> %x over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
// CHECK-NEXT:     graph.return %a, %b : !graph.tensor<[4], f32>, !graph.tensor<[4], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
