// RUN: tessera opt %s -p apply-facts -f "arg0.size[0] = 4" -f "arg1.size[0] = 9" -f "arg0.size[1] = 6" | filecheck %s
// Symbols of a graph function are replaced everywhere; a size that follows from another needs no guard of its own.
graph.func @f(%x: !graph.tensor<[S, T], bf16>, %y: !graph.tensor<["2*S + 1"], bf16>) -> (!graph.tensor<["S*T"], bf16>, !graph.tensor<[T, "2*S + 1"], bf16>) {
  %flat = graph.reshape %x : !graph.tensor<[S, T], bf16> -> !graph.tensor<["S*T"], bf16>
  %wide = graph.broadcast %y : !graph.tensor<["2*S + 1"], bf16> -> !graph.tensor<[T, "2*S + 1"], bf16>
  graph.return %flat, %wide : !graph.tensor<["S*T"], bf16>, !graph.tensor<[T, "2*S + 1"], bf16>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[4, 6], bf16>, %y: !graph.tensor<[9], bf16>) -> (!graph.tensor<[24], bf16>, !graph.tensor<[6, 9], bf16>) {
// CHECK-NEXT:     %flat = graph.reshape %x : !graph.tensor<[4, 6], bf16> -> !graph.tensor<[24], bf16>
// CHECK-NEXT:     %wide = graph.broadcast %y : !graph.tensor<[9], bf16> -> !graph.tensor<[6, 9], bf16>
// CHECK-NEXT:     graph.return %flat, %wide : !graph.tensor<[24], bf16>, !graph.tensor<[6, 9], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.size[0] = 4
// CHECK-NEXT: // guard: arg0.size[1] = 6
// CHECK-NOT: guard
