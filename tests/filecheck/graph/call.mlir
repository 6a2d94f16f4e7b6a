// RUN: tessera opt %s | filecheck %s
// The callee may stand before or behind and call others; effects are the callee's.
graph.func @caller(%x: !graph.tensor<[S], bf16>, %i: index) -> (!graph.tensor<[S], bf16>) effects [io] {
  %y, %n = graph.call @two(%x, %i) : (!graph.tensor<[S], bf16>, index) -> (!graph.tensor<[S], bf16>, index)
  graph.call @"nothing at all"() : () -> ()
  graph.call @loud() {tail} : () -> ()
  graph.return %y : !graph.tensor<[S], bf16>
}
graph.func @two(%x: !graph.tensor<[S], bf16>, %i: index) -> (!graph.tensor<[S], bf16>, index) {
  graph.return %x, %i : !graph.tensor<[S], bf16>, index
}
graph.func @"nothing at all"() {
  graph.return
}
graph.func @loud() effects [io] {
  graph.call @"nothing at all"() : () -> ()
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @caller(%x: !graph.tensor<[S], bf16>, %i: index) -> (!graph.tensor<[S], bf16>) effects [io] {
// CHECK-NEXT:     %y, %n = graph.call @two(%x, %i) : (!graph.tensor<[S], bf16>, index) -> (!graph.tensor<[S], bf16>, index)
// CHECK-NEXT:     graph.call @"nothing at all"() : () -> ()
// CHECK-NEXT:     graph.call @loud() {tail} : () -> ()
// CHECK-NEXT:     graph.return %y : !graph.tensor<[S], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @two(%x: !graph.tensor<[S], bf16>, %i: index) -> (!graph.tensor<[S], bf16>, index) {
// CHECK-NEXT:     graph.return %x, %i : !graph.tensor<[S], bf16>, index
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @"nothing at all"() {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @loud() effects [io] {
// CHECK-NEXT:     graph.call @"nothing at all"() : () -> ()
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
