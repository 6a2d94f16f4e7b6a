// RUN: tessera opt %s | filecheck %s
// The slot may be declared before or behind the function that reads it.
graph.state @counter : !graph.tensor<[], i64>
graph.func @f() -> (!graph.tensor<[], i64>) effects ["state(counter)", "state(slot 7)"] {
  %a = graph.state_read @counter : !graph.tensor<[], i64>
  %b = graph.state_read @"slot 7" {k} : !graph.tensor<[4, 0], bf16, saturate>
  graph.return %a : !graph.tensor<[], i64>
}
graph.state @"slot 7" : !graph.tensor<[4, 0], bf16, saturate>

// CHECK: builtin.module {
// CHECK-NEXT:   graph.state @counter : !graph.tensor<[], i64>
// CHECK-NEXT:   graph.func @f() -> (!graph.tensor<[], i64>) effects ["state(counter)", "state(slot 7)"] {
// CHECK-NEXT:     %a = graph.state_read @counter : !graph.tensor<[], i64>
// CHECK-NEXT:     %b = graph.state_read @"slot 7" {k} : !graph.tensor<[4, 0], bf16, saturate>
// CHECK-NEXT:     graph.return %a : !graph.tensor<[], i64>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.state @"slot 7" : !graph.tensor<[4, 0], bf16, saturate>
// CHECK-NEXT: }
