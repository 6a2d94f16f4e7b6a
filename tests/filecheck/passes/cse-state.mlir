// RUN: tessera opt %s -p cse | filecheck %s
// Reads of a slot merge until it is written; writes to other slots do not matter.
graph.state @a : !graph.tensor<[], f32>
graph.state @b : !graph.tensor<[], f32>
graph.func @f() -> (!graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>) effects ["state(a)", "state(b)"] {
  %first = graph.state_read @a : !graph.tensor<[], f32>
  graph.state_write @b, %first : !graph.tensor<[], f32>
  %same = graph.state_read @a : !graph.tensor<[], f32>
  graph.state_write @a, %first : !graph.tensor<[], f32>
  %later = graph.state_read @a : !graph.tensor<[], f32>
  graph.return %first, %same, %later : !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.state @a : !graph.tensor<[], f32>
// CHECK-NEXT:   graph.state @b : !graph.tensor<[], f32>
// CHECK-NEXT:   graph.func @f() -> (!graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>) effects ["state(a)", "state(b)"] {
// CHECK-NEXT:     %first = graph.state_read @a : !graph.tensor<[], f32>
// CHECK-NEXT:     graph.state_write @b, %first : !graph.tensor<[], f32>
// CHECK-NEXT:     graph.state_write @a, %first : !graph.tensor<[], f32>
// CHECK-NEXT:     %later = graph.state_read @a : !graph.tensor<[], f32>
// CHECK-NEXT:     graph.return %first, %first, %later : !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
