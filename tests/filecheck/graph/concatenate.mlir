// RUN: tessera opt %s | filecheck %s
// Sizes along the axis add up, symbols too; one tensor alone is allowed.
graph.func @f(%x: !graph.tensor<[S, 3], bf16>, %y: !graph.tensor<["S + 1", 3], bf16>, %n: !graph.tensor<[4], i4>, %z: !graph.tensor<[0], i4>) {
  %a = graph.concatenate %x, %y axis 0 : !graph.tensor<[S, 3], bf16>, !graph.tensor<["S + 1", 3], bf16> -> !graph.tensor<["2*S + 1", 3], bf16>
  %b = graph.concatenate %x, %x, %x axis 1 : !graph.tensor<[S, 3], bf16>, !graph.tensor<[S, 3], bf16>, !graph.tensor<[S, 3], bf16> -> !graph.tensor<[S, 9], bf16>
  %c = graph.concatenate %n, %z axis 0 {k} : !graph.tensor<[4], i4>, !graph.tensor<[0], i4> -> !graph.tensor<[4], i4>
  %one = graph.concatenate %n axis 0 : !graph.tensor<[4], i4> -> !graph.tensor<[4], i4>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 3], bf16>, %y: !graph.tensor<["S + 1", 3], bf16>, %n: !graph.tensor<[4], i4>, %z: !graph.tensor<[0], i4>) {
// CHECK-NEXT:     %a = graph.concatenate %x, %y axis 0 : !graph.tensor<[S, 3], bf16>, !graph.tensor<["S + 1", 3], bf16> -> !graph.tensor<["2*S + 1", 3], bf16>
// CHECK-NEXT:     %b = graph.concatenate %x, %x, %x axis 1 : !graph.tensor<[S, 3], bf16>, !graph.tensor<[S, 3], bf16>, !graph.tensor<[S, 3], bf16> -> !graph.tensor<[S, 9], bf16>
// CHECK-NEXT:     %c = graph.concatenate %n, %z axis 0 {k} : !graph.tensor<[4], i4>, !graph.tensor<[0], i4> -> !graph.tensor<[4], i4>
// CHECK-NEXT:     %one = graph.concatenate %n axis 0 : !graph.tensor<[4], i4> -> !graph.tensor<[4], i4>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
