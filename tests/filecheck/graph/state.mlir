// RUN: tessera opt %s | filecheck %s
// A slot has constant sizes; its name may need quotes.
graph.state @counter : !graph.tensor<[], i64>
graph.state @cache : !graph.tensor<[2, 0, 3], bf16, accum(f32)> {pinned}
graph.state @"slot 7" : !graph.tensor<[4], f8E4M3FN>
graph.state @bits : !graph.tensor<[8], i1>
graph.state @nibbles : !graph.tensor<[8], i4>
graph.state @bytes : !graph.tensor<[8], ui8>

// CHECK: builtin.module {
// CHECK-NEXT:   graph.state @counter : !graph.tensor<[], i64>
// CHECK-NEXT:   graph.state @cache : !graph.tensor<[2, 0, 3], bf16, accum(f32)> {pinned}
// CHECK-NEXT:   graph.state @"slot 7" : !graph.tensor<[4], f8E4M3FN>
// CHECK-NEXT:   graph.state @bits : !graph.tensor<[8], i1>
// CHECK-NEXT:   graph.state @nibbles : !graph.tensor<[8], i4>
// CHECK-NEXT:   graph.state @bytes : !graph.tensor<[8], ui8>
// CHECK-NEXT: }
