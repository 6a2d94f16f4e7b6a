// RUN: tessera opt %s | filecheck %s
// Axes fold away, or stay with size 1; no axes at all is allowed.
graph.func @f(%x: !graph.tensor<[B, "2*S + 1", 3], bf16, accum(f32)>, %n: !graph.tensor<[4], i4>, %u: !graph.tensor<[4], ui8>, %b: !graph.tensor<[0, 4], i1>, %s: !graph.tensor<[], f8E4M3FN>) {
  %sum = graph.reduce<sum> %x, [1] : !graph.tensor<[B, "2*S + 1", 3], bf16, accum(f32)> -> !graph.tensor<[B, 3], bf16, accum(f32)>
  %kept = graph.reduce<max> %x, [0, 2] keepdims : !graph.tensor<[B, "2*S + 1", 3], bf16, accum(f32)> -> !graph.tensor<[1, "2*S + 1", 1], bf16, accum(f32)>
  %all = graph.reduce<prod> %n, [0] : !graph.tensor<[4], i4> -> !graph.tensor<[], i4>
  %min = graph.reduce<min> %u, [0] : !graph.tensor<[4], ui8> -> !graph.tensor<[], ui8>
  %and = graph.reduce<and> %b, [0] : !graph.tensor<[0, 4], i1> -> !graph.tensor<[4], i1>
  %or = graph.reduce<or> %u, [0] : !graph.tensor<[4], ui8> -> !graph.tensor<[], ui8>
  %xor = graph.reduce<xor> %u, [0] keepdims {k} : !graph.tensor<[4], ui8> -> !graph.tensor<[1], ui8>
  %none = graph.reduce<sum> %s, [] : !graph.tensor<[], f8E4M3FN> -> !graph.tensor<[], f8E4M3FN>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[B, "2*S + 1", 3], bf16, accum(f32)>, %n: !graph.tensor<[4], i4>, %u: !graph.tensor<[4], ui8>, %b: !graph.tensor<[0, 4], i1>, %s: !graph.tensor<[], f8E4M3FN>) {
// CHECK-NEXT:     %sum = graph.reduce<sum> %x, [1] : !graph.tensor<[B, "2*S + 1", 3], bf16, accum(f32)> -> !graph.tensor<[B, 3], bf16, accum(f32)>
// CHECK-NEXT:     %kept = graph.reduce<max> %x, [0, 2] keepdims : !graph.tensor<[B, "2*S + 1", 3], bf16, accum(f32)> -> !graph.tensor<[1, "2*S + 1", 1], bf16, accum(f32)>
// CHECK-NEXT:     %all = graph.reduce<prod> %n, [0] : !graph.tensor<[4], i4> -> !graph.tensor<[], i4>
// CHECK-NEXT:     %min = graph.reduce<min> %u, [0] : !graph.tensor<[4], ui8> -> !graph.tensor<[], ui8>
// CHECK-NEXT:     %and = graph.reduce<and> %b, [0] : !graph.tensor<[0, 4], i1> -> !graph.tensor<[4], i1>
// CHECK-NEXT:     %or = graph.reduce<or> %u, [0] : !graph.tensor<[4], ui8> -> !graph.tensor<[], ui8>
// CHECK-NEXT:     %xor = graph.reduce<xor> %u, [0] keepdims {k} : !graph.tensor<[4], ui8> -> !graph.tensor<[1], ui8>
// CHECK-NEXT:     %none = graph.reduce<sum> %s, [] : !graph.tensor<[], f8E4M3FN> -> !graph.tensor<[], f8E4M3FN>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
