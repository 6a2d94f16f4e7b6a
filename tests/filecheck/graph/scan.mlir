// RUN: tessera opt %s | filecheck %s
// A running sum over the rows of %x, its steps stacked; and a scan over nothing that repeats three times.
graph.func @f(%s: !graph.tensor<[4], f32>, %x: !graph.tensor<[S, 4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[S, 4], bf16>) {
  %total, %steps = graph.scan <[S]> reverse from (%s) over (%x) do {
  ^bb0(%sum: !graph.tensor<[4], f32>, %row: !graph.tensor<[4], f32>):
    %next = graph.ew<add> %sum, %row : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
    %rounded = graph.ew<cast> %next : !graph.tensor<[4], f32> -> !graph.tensor<[4], bf16>
    graph.yield %next, %rounded : !graph.tensor<[4], f32>, !graph.tensor<[4], bf16>
  } {k} : (!graph.tensor<[4], f32>), (!graph.tensor<[S, 4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[S, 4], bf16>)
  %last = graph.scan <[3]> from (%total) over () do {
  ^bb0(%sum: !graph.tensor<[4], f32>):
    %next = graph.ew<neg> %sum : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
    graph.yield %next : !graph.tensor<[4], f32>
  } : (!graph.tensor<[4], f32>), () -> (!graph.tensor<[4], f32>)
  graph.return %last, %steps : !graph.tensor<[4], f32>, !graph.tensor<[S, 4], bf16>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%s: !graph.tensor<[4], f32>, %x: !graph.tensor<[S, 4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[S, 4], bf16>) {
// CHECK-NEXT:     %total, %steps = graph.scan <[S]> reverse from(%s) over(%x) do {
// CHECK-NEXT:     ^bb0(%sum: !graph.tensor<[4], f32>, %row: !graph.tensor<[4], f32>):
// CHECK-NEXT:       %next = graph.ew<add> %sum, %row : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
// CHECK-NEXT:       %rounded = graph.ew<cast> %next : !graph.tensor<[4], f32> -> !graph.tensor<[4], bf16>
// CHECK-NEXT:       graph.yield %next, %rounded : !graph.tensor<[4], f32>, !graph.tensor<[4], bf16>
// CHECK-NEXT:     } {k} : (!graph.tensor<[4], f32>), (!graph.tensor<[S, 4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[S, 4], bf16>)
// CHECK-NEXT:     %last = graph.scan <[3]> from(%total) over() do {
// CHECK-NEXT:     ^bb0(%sum_1: !graph.tensor<[4], f32>):
// CHECK-NEXT:       %next_1 = graph.ew<neg> %sum_1 : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
// CHECK-NEXT:       graph.yield %next_1 : !graph.tensor<[4], f32>
// CHECK-NEXT:     } : (!graph.tensor<[4], f32>), () -> (!graph.tensor<[4], f32>)
// CHECK-NEXT:     graph.return %last, %steps : !graph.tensor<[4], f32>, !graph.tensor<[S, 4], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
