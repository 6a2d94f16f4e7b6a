// RUN: tessera opt %s | filecheck %s
// Labels are any text, also beyond ASCII.
graph.func @f(%x: !graph.tensor<["2*S + 1"], bf16>, %s: !graph.tensor<[], i4>, %z: !graph.tensor<[0], i1>) effects [io] {
  graph.print "x", %x : !graph.tensor<["2*S + 1"], bf16>
  graph.print "", %s : !graph.tensor<[], i4>
  graph.print "größer \22als\22\\\n", %z {k} : !graph.tensor<[0], i1>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<["2*S + 1"], bf16>, %s: !graph.tensor<[], i4>, %z: !graph.tensor<[0], i1>) effects [io] {
// CHECK-NEXT:     graph.print "x", %x : !graph.tensor<["2*S + 1"], bf16>
// CHECK-NEXT:     graph.print "", %s : !graph.tensor<[], i4>
// CHECK-NEXT:     graph.print "gr\C3\B6\C3\9Fer \22als\22\\\0A", %z {k} : !graph.tensor<[0], i1>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
