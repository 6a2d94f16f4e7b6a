// RUN: tessera opt %s | filecheck %s
// Sums, products, maxima and minima of everything up to a place, or before it.
graph.func @f(%x: !graph.tensor<[S, 8], bf16>, %i: !graph.tensor<["2*S"], ui8>) {
  %a = graph.cumulate<sum> %x, 1 : !graph.tensor<[S, 8], bf16> -> !graph.tensor<[S, 8], bf16>
  %b = graph.cumulate<prod> %x, 0 exclusive : !graph.tensor<[S, 8], bf16> -> !graph.tensor<[S, 8], bf16>
  %c = graph.cumulate<max> %i, 0 {k} : !graph.tensor<["2*S"], ui8> -> !graph.tensor<["2*S"], ui8>
  %d = graph.cumulate<min> %i, 0 exclusive {k} : !graph.tensor<["2*S"], ui8> -> !graph.tensor<["2*S"], ui8>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 8], bf16>, %i: !graph.tensor<["2*S"], ui8>) {
// CHECK-NEXT:     %a = graph.cumulate<sum> %x, 1 : !graph.tensor<[S, 8], bf16> -> !graph.tensor<[S, 8], bf16>
// CHECK-NEXT:     %b = graph.cumulate<prod> %x, 0 exclusive : !graph.tensor<[S, 8], bf16> -> !graph.tensor<[S, 8], bf16>
// CHECK-NEXT:     %c = graph.cumulate<max> %i, 0 {k} : !graph.tensor<["2*S"], ui8> -> !graph.tensor<["2*S"], ui8>
// CHECK-NEXT:     %d = graph.cumulate<min> %i, 0 exclusive {k} : !graph.tensor<["2*S"], ui8> -> !graph.tensor<["2*S"], ui8>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
