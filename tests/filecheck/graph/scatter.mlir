// RUN: tessera opt %s | filecheck %s
// Updates at indices along an axis, which take the place of what is there or are combined with it.
graph.func @f(%x: !graph.tensor<[S, 8], bf16>, %y: !graph.tensor<[2, 3, 8], bf16>, %i: !graph.tensor<[2, 3], i32>, %z: !graph.tensor<[S], bf16>, %j: !graph.tensor<[], ui8>) {
  %a = graph.scatter<set> %y into %x[%i], [0] : !graph.tensor<[2, 3, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[2, 3], i32> -> !graph.tensor<[S, 8], bf16>
  %b = graph.scatter<add> %z into %x[%j], [1] {k} : !graph.tensor<[S], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[], ui8> -> !graph.tensor<[S, 8], bf16>
  %c = graph.scatter<max> %y into %x[%i], [0] : !graph.tensor<[2, 3, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[2, 3], i32> -> !graph.tensor<[S, 8], bf16>
  %d = graph.scatter<min> %y into %x[%i], [0] : !graph.tensor<[2, 3, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[2, 3], i32> -> !graph.tensor<[S, 8], bf16>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 8], bf16>, %y: !graph.tensor<[2, 3, 8], bf16>, %i: !graph.tensor<[2, 3], i32>, %z: !graph.tensor<[S], bf16>, %j: !graph.tensor<[], ui8>) {
// CHECK-NEXT:     %a = graph.scatter<set> %y into %x[%i], [0] : !graph.tensor<[2, 3, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[2, 3], i32> -> !graph.tensor<[S, 8], bf16>
// CHECK-NEXT:     %b = graph.scatter<add> %z into %x[%j], [1] {k} : !graph.tensor<[S], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[], ui8> -> !graph.tensor<[S, 8], bf16>
// CHECK-NEXT:     %c = graph.scatter<max> %y into %x[%i], [0] : !graph.tensor<[2, 3, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[2, 3], i32> -> !graph.tensor<[S, 8], bf16>
// CHECK-NEXT:     %d = graph.scatter<min> %y into %x[%i], [0] : !graph.tensor<[2, 3, 8], bf16> into !graph.tensor<[S, 8], bf16>, !graph.tensor<[2, 3], i32> -> !graph.tensor<[S, 8], bf16>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
