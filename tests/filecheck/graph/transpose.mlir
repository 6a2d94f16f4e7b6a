// RUN: tessera opt %s | filecheck %s
// Result axis i is operand axis permutation[i]; a tensor without axes has the empty permutation.
graph.func @f(%x: !graph.tensor<[A, "2*S + 1", 3], bf16>, %s: !graph.tensor<[], i4>, %z: !graph.tensor<[0, 3], i1>) {
  %a = graph.transpose %x, [2, 0, 1] : !graph.tensor<[A, "2*S + 1", 3], bf16> -> !graph.tensor<[3, A, "2*S + 1"], bf16>
  %b = graph.transpose %s, [] : !graph.tensor<[], i4> -> !graph.tensor<[], i4>
  %c = graph.transpose %z, [1, 0] {k} : !graph.tensor<[0, 3], i1> -> !graph.tensor<[3, 0], i1>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[A, "2*S + 1", 3], bf16>, %s: !graph.tensor<[], i4>, %z: !graph.tensor<[0, 3], i1>) {
// CHECK-NEXT:     %a = graph.transpose %x, [2, 0, 1] : !graph.tensor<[A, "2*S + 1", 3], bf16> -> !graph.tensor<[3, A, "2*S + 1"], bf16>
// CHECK-NEXT:     %b = graph.transpose %s, [] : !graph.tensor<[], i4> -> !graph.tensor<[], i4>
// CHECK-NEXT:     %c = graph.transpose %z, [1, 0] {k} : !graph.tensor<[0, 3], i1> -> !graph.tensor<[3, 0], i1>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
