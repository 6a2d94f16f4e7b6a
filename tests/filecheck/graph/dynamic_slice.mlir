// RUN: tessera opt %s | filecheck %s
// A part from starts on that are tensors of one whole number, one to each axis.
graph.func @f(%x: !graph.tensor<[S, 8], bf16>, %i: !graph.tensor<[], i32>, %u: !graph.tensor<[], ui64>) {
  %a = graph.dynamic_slice %x[%i, %u] : !graph.tensor<[S, 8], bf16>, !graph.tensor<[], i32>, !graph.tensor<[], ui64> -> !graph.tensor<[2, 8], bf16>
  %b = graph.dynamic_slice %x[%i, %i] {k} : !graph.tensor<[S, 8], bf16>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[S, 0], bf16>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 8], bf16>, %i: !graph.tensor<[], i32>, %u: !graph.tensor<[], ui64>) {
// CHECK-NEXT:     %a = graph.dynamic_slice %x[%i, %u] : !graph.tensor<[S, 8], bf16>, !graph.tensor<[], i32>, !graph.tensor<[], ui64> -> !graph.tensor<[2, 8], bf16>
// CHECK-NEXT:     %b = graph.dynamic_slice %x[%i, %i] {k} : !graph.tensor<[S, 8], bf16>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[S, 0], bf16>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
