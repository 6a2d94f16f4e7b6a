// RUN: tessera opt %s | filecheck %s
// Any number of values, tensors and scalars; attributes come last.
graph.func @none() {
  graph.return
}
graph.func @attributed() {
  graph.return {why = "done"}
}
graph.func @one(%x: !graph.tensor<["2*S + 1"], bf16>) -> (!graph.tensor<["2*S + 1"], bf16>) {
  graph.return %x : !graph.tensor<["2*S + 1"], bf16>
}
graph.func @several(%x: !graph.tensor<[], i4>, %i: index) -> (!graph.tensor<[], i4>, index, !graph.tensor<[], i4>) {
  graph.return %x, %i, %x : !graph.tensor<[], i4>, index, !graph.tensor<[], i4> {a = 1 : i64}
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @none() {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @attributed() {
// CHECK-NEXT:     graph.return {why = "done"}
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @one(%x: !graph.tensor<["2*S + 1"], bf16>) -> (!graph.tensor<["2*S + 1"], bf16>) {
// CHECK-NEXT:     graph.return %x : !graph.tensor<["2*S + 1"], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @several(%x: !graph.tensor<[], i4>, %i: index) -> (!graph.tensor<[], i4>, index, !graph.tensor<[], i4>) {
// CHECK-NEXT:     graph.return %x, %i, %x : !graph.tensor<[], i4>, index, !graph.tensor<[], i4> {a = 1 : i64}
// CHECK-NEXT:   }
// CHECK-NEXT: }
