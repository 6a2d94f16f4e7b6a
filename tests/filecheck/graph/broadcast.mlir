// RUN: tessera opt %s | filecheck %s
// Missing leading axes appear, axes of size 1 repeat; sizes may be symbols and may be 0.
graph.func @f(%x: !graph.tensor<[F], bf16>, %y: !graph.tensor<[B, 1], i4>, %s: !graph.tensor<[], f8E4M3FN>, %one: !graph.tensor<[1], i1>, %sizes: !graph.tensor<[S], i1>) {
  %a = graph.broadcast %x : !graph.tensor<[F], bf16> -> !graph.tensor<[B, F], bf16>
  %b = graph.broadcast %y : !graph.tensor<[B, 1], i4> -> !graph.tensor<[3, B, "2*S + 1"], i4>
  %c = graph.broadcast %s : !graph.tensor<[], f8E4M3FN> -> !graph.tensor<[2, 2], f8E4M3FN>
  %d = graph.broadcast %one {k} : !graph.tensor<[1], i1> -> !graph.tensor<[0], i1>
  %same = graph.broadcast %x : !graph.tensor<[F], bf16> -> !graph.tensor<[F], bf16>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[F], bf16>, %y: !graph.tensor<[B, 1], i4>, %s: !graph.tensor<[], f8E4M3FN>, %one: !graph.tensor<[1], i1>, %sizes: !graph.tensor<[S], i1>) {
// CHECK-NEXT:     %a = graph.broadcast %x : !graph.tensor<[F], bf16> -> !graph.tensor<[B, F], bf16>
// CHECK-NEXT:     %b = graph.broadcast %y : !graph.tensor<[B, 1], i4> -> !graph.tensor<[3, B, "2*S + 1"], i4>
// CHECK-NEXT:     %c = graph.broadcast %s : !graph.tensor<[], f8E4M3FN> -> !graph.tensor<[2, 2], f8E4M3FN>
// CHECK-NEXT:     %d = graph.broadcast %one {k} : !graph.tensor<[1], i1> -> !graph.tensor<[0], i1>
// CHECK-NEXT:     %same = graph.broadcast %x : !graph.tensor<[F], bf16> -> !graph.tensor<[F], bf16>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
