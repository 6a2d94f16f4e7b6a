// RUN: tessera opt %s -p cse | filecheck %s
// Equal ops merge: same operands, properties, attributes and result types.
graph.func @f(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], bf16>, !graph.tensor<[S], f16>) {
  %a = graph.ew<exp> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %b = graph.ew<exp> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %c = graph.ew<log> %b : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %d = graph.ew<log> %a : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %other_row = graph.ew<sin> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %other_note = graph.ew<exp> %x {note} : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  %bf16 = graph.ew<cast> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], bf16>
  %f16 = graph.ew<cast> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f16>
  graph.return %c, %d, %other_row, %other_note, %bf16, %f16 : !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], bf16>, !graph.tensor<[S], f16>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], bf16>, !graph.tensor<[S], f16>) {
// CHECK-NEXT:     %a = graph.ew<exp> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %c = graph.ew<log> %a : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %other_row = graph.ew<sin> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %other_note = graph.ew<exp> %x {note} : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %bf16 = graph.ew<cast> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], bf16>
// CHECK-NEXT:     %f16 = graph.ew<cast> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f16>
// CHECK-NEXT:     graph.return %c, %c, %other_row, %other_note, %bf16, %f16 : !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], bf16>, !graph.tensor<[S], f16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
