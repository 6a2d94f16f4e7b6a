// RUN: tessera opt %s | filecheck %s
// The number of elements stays; that is decided for symbols, too.
graph.func @f(%x: !graph.tensor<[S, 6], bf16>, %s: !graph.tensor<[], ui8>, %z: !graph.tensor<[0, 3], i1>, %p: !graph.tensor<["B*H", 4], f8E4M3FN, saturate>, %sizes: !graph.tensor<[B, H], i1>) {
  %a = graph.reshape %x : !graph.tensor<[S, 6], bf16> -> !graph.tensor<["6*S"], bf16>
  %b = graph.reshape %x : !graph.tensor<[S, 6], bf16> -> !graph.tensor<[2, S, 3], bf16>
  %c = graph.reshape %s : !graph.tensor<[], ui8> -> !graph.tensor<[1, 1], ui8>
  %d = graph.reshape %z {k} : !graph.tensor<[0, 3], i1> -> !graph.tensor<[0], i1>
  %e = graph.reshape %p : !graph.tensor<["B*H", 4], f8E4M3FN, saturate> -> !graph.tensor<[B, H, 4], f8E4M3FN, saturate>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 6], bf16>, %s: !graph.tensor<[], ui8>, %z: !graph.tensor<[0, 3], i1>, %p: !graph.tensor<["B*H", 4], f8E4M3FN, saturate>, %sizes: !graph.tensor<[B, H], i1>) {
// CHECK-NEXT:     %a = graph.reshape %x : !graph.tensor<[S, 6], bf16> -> !graph.tensor<["6*S"], bf16>
// CHECK-NEXT:     %b = graph.reshape %x : !graph.tensor<[S, 6], bf16> -> !graph.tensor<[2, S, 3], bf16>
// CHECK-NEXT:     %c = graph.reshape %s : !graph.tensor<[], ui8> -> !graph.tensor<[1, 1], ui8>
// CHECK-NEXT:     %d = graph.reshape %z {k} : !graph.tensor<[0, 3], i1> -> !graph.tensor<[0], i1>
// CHECK-NEXT:     %e = graph.reshape %p : !graph.tensor<["B*H", 4], f8E4M3FN, saturate> -> !graph.tensor<[B, H, 4], f8E4M3FN, saturate>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
