// RUN: tessera opt %s -p cse | filecheck %s
// Each draw advances the stream.
graph.func @f() -> (!graph.tensor<[4], f32>, !graph.tensor<[4], f32>) effects [random] {
  %a = graph.random<uniform> : !graph.tensor<[4], f32>
  %b = graph.random<uniform> : !graph.tensor<[4], f32>
  graph.return %a, %b : !graph.tensor<[4], f32>, !graph.tensor<[4], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f() -> (!graph.tensor<[4], f32>, !graph.tensor<[4], f32>) effects [random] {
// CHECK-NEXT:     %a = graph.random<uniform> : !graph.tensor<[4], f32>
// CHECK-NEXT:     %b = graph.random<uniform> : !graph.tensor<[4], f32>
// CHECK-NEXT:     graph.return %a, %b : !graph.tensor<[4], f32>, !graph.tensor<[4], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
