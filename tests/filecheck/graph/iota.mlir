// RUN: tessera opt %s | filecheck %s
// The position along an axis, in any integer type, over any sizes.
graph.func @f() {
  %a = graph.iota 0 : !graph.tensor<[4], i64>
  %b = graph.iota 1 : !graph.tensor<[3, 5], i4>
  %c = graph.iota 0 {k} : !graph.tensor<[0, 2], ui8>
  graph.return
}
graph.func @symbolic(%x: !graph.tensor<[S], i1>) {
  %d = graph.iota 1 : !graph.tensor<[2, "2*S + 1"], i32>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f() {
// CHECK-NEXT:     %a = graph.iota 0 : !graph.tensor<[4], i64>
// CHECK-NEXT:     %b = graph.iota 1 : !graph.tensor<[3, 5], i4>
// CHECK-NEXT:     %c = graph.iota 0 {k} : !graph.tensor<[0, 2], ui8>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @symbolic(%x: !graph.tensor<[S], i1>) {
// CHECK-NEXT:     %d = graph.iota 1 : !graph.tensor<[2, "2*S + 1"], i32>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
