// RUN: tessera opt %s | filecheck %s
// A tensor with a part replaced.
graph.func @f(%x: !graph.tensor<[S, 8], bf16>, %y: !graph.tensor<[1, 8], bf16>, %i: !graph.tensor<[], i32>, %u: !graph.tensor<[], ui64>) {
  %a = graph.dynamic_update_slice %y into %x[%i, %u] : !graph.tensor<[1, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[], i32>, !graph.tensor<[], ui64> -> !graph.tensor<[S, 8], bf16>
  %b = graph.dynamic_update_slice %x into %x[%i, %i] {k} : !graph.tensor<[S, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[S, 8], bf16>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 8], bf16>, %y: !graph.tensor<[1, 8], bf16>, %i: !graph.tensor<[], i32>, %u: !graph.tensor<[], ui64>) {
// CHECK-NEXT:     %a = graph.dynamic_update_slice %y into %x[%i, %u] : !graph.tensor<[1, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[], i32>, !graph.tensor<[], ui64> -> !graph.tensor<[S, 8], bf16>
// CHECK-NEXT:     %b = graph.dynamic_update_slice %x into %x[%i, %i] {k} : !graph.tensor<[S, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[S, 8], bf16>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
