// RUN: tessera opt %s | filecheck %s
// Uniform or normal, in any float type and over any sizes.
graph.func @f(%x: !graph.tensor<[S], f32>) effects [random] {
  %a = graph.random<uniform> : !graph.tensor<[2, 3], f32>
  %b = graph.random<normal> : !graph.tensor<["2*S + 1"], bf16>
  %c = graph.random<normal> {k} : !graph.tensor<[], f8E4M3FN>
  %d = graph.random<uniform> : !graph.tensor<[0], f64>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S], f32>) effects [random] {
// CHECK-NEXT:     %a = graph.random<uniform> : !graph.tensor<[2, 3], f32>
// CHECK-NEXT:     %b = graph.random<normal> : !graph.tensor<["2*S + 1"], bf16>
// CHECK-NEXT:     %c = graph.random<normal> {k} : !graph.tensor<[], f8E4M3FN>
// CHECK-NEXT:     %d = graph.random<uniform> : !graph.tensor<[0], f64>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
