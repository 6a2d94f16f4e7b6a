// RUN: tessera opt %s | filecheck %s
// The axes are replaced by the axes of the indices, which may have none.
graph.func @f(%x: !graph.tensor<[A, B, C], bf16>, %i: !graph.tensor<["2*S + 1", 2], i32>, %j: !graph.tensor<[], ui8>, %k: !graph.tensor<[0], i4>, %v: !graph.tensor<[4], i1>) {
  %a = graph.gather %x[%i], [1] : !graph.tensor<[A, B, C], bf16>, !graph.tensor<["2*S + 1", 2], i32> -> !graph.tensor<[A, "2*S + 1", 2, C], bf16>
  %b = graph.gather %x[%j], [0] : !graph.tensor<[A, B, C], bf16>, !graph.tensor<[], ui8> -> !graph.tensor<[B, C], bf16>
  %c = graph.gather %v[%k], [0] {k} : !graph.tensor<[4], i1>, !graph.tensor<[0], i4> -> !graph.tensor<[0], i1>
  %d = graph.gather %x[%j, %j], [0, 2] : !graph.tensor<[A, B, C], bf16>, !graph.tensor<[], ui8>, !graph.tensor<[], ui8> -> !graph.tensor<[B], bf16>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[A, B, C], bf16>, %i: !graph.tensor<["2*S + 1", 2], i32>, %j: !graph.tensor<[], ui8>, %k: !graph.tensor<[0], i4>, %v: !graph.tensor<[4], i1>) {
// CHECK-NEXT:     %a = graph.gather %x[%i], [1] : !graph.tensor<[A, B, C], bf16>, !graph.tensor<["2*S + 1", 2], i32> -> !graph.tensor<[A, "2*S + 1", 2, C], bf16>
// CHECK-NEXT:     %b = graph.gather %x[%j], [0] : !graph.tensor<[A, B, C], bf16>, !graph.tensor<[], ui8> -> !graph.tensor<[B, C], bf16>
// CHECK-NEXT:     %c = graph.gather %v[%k], [0] {k} : !graph.tensor<[4], i1>, !graph.tensor<[0], i4> -> !graph.tensor<[0], i1>
// CHECK-NEXT:     %d = graph.gather %x[%j, %j], [0, 2] : !graph.tensor<[A, B, C], bf16>, !graph.tensor<[], ui8>, !graph.tensor<[], ui8> -> !graph.tensor<[B], bf16>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
