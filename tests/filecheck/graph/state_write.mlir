// RUN: tessera opt %s | filecheck %s
// Writing gives no value; reading again gives the new one.
graph.state @counter : !graph.tensor<[], i64>
graph.func @f(%x: !graph.tensor<[4], i4>) effects ["state(counter)", "state(nibbles)"] {
  %a = graph.state_read @counter : !graph.tensor<[], i64>
  %b = graph.ew<add> %a, %a : !graph.tensor<[], i64>, !graph.tensor<[], i64> -> !graph.tensor<[], i64>
  graph.state_write @counter, %b : !graph.tensor<[], i64>
  graph.state_write @nibbles, %x {k} : !graph.tensor<[4], i4>
  graph.return
}
graph.state @nibbles : !graph.tensor<[4], i4>

// CHECK: builtin.module {
// CHECK-NEXT:   graph.state @counter : !graph.tensor<[], i64>
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[4], i4>) effects ["state(counter)", "state(nibbles)"] {
// CHECK-NEXT:     %a = graph.state_read @counter : !graph.tensor<[], i64>
// CHECK-NEXT:     %b = graph.ew<add> %a, %a : !graph.tensor<[], i64>, !graph.tensor<[], i64> -> !graph.tensor<[], i64>
// CHECK-NEXT:     graph.state_write @counter, %b : !graph.tensor<[], i64>
// CHECK-NEXT:     graph.state_write @nibbles, %x {k} : !graph.tensor<[4], i4>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.state @nibbles : !graph.tensor<[4], i4>
// CHECK-NEXT: }
