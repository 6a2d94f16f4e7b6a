// RUN: tessera opt %s | filecheck %s
// Python's slices, one per axis: steps, bounds from the end, reversal; symbolic axes where the bounds provably fit.
graph.func @f(%x: !graph.tensor<[10, 4], bf16>, %s: !graph.tensor<["S + 2"], ui8>, %r: !graph.tensor<[], i1>) {
  %steps = graph.slice %x [1, 0] to [9, 4] by [3, 1] : !graph.tensor<[10, 4], bf16> -> !graph.tensor<[3, 4], bf16>
  %from_end = graph.slice %x [-3, 0] to [10, -1] by [1, 1] : !graph.tensor<[10, 4], bf16> -> !graph.tensor<[3, 3], bf16>
  %reversed = graph.slice %x [9, 3] to [-11, -5] by [-1, -1] : !graph.tensor<[10, 4], bf16> -> !graph.tensor<[10, 4], bf16>
  %nothing = graph.slice %x [5, 0] to [5, 4] by [1, 1] {k} : !graph.tensor<[10, 4], bf16> -> !graph.tensor<[0, 4], bf16>
  %symbolic = graph.slice %s [1] to [-1] by [1] : !graph.tensor<["S + 2"], ui8> -> !graph.tensor<[S], ui8>
  %rank0 = graph.slice %r [] to [] by [] : !graph.tensor<[], i1> -> !graph.tensor<[], i1>
  graph.return
}
// Open ends of symbolic axes are the extreme numbers; how small a symbol may be is said by the function.
graph.func @open(%x: !graph.tensor<[S, 4], f32>) attributes {graph.least = {S = 2 : i64}} {
  %rest = graph.slice %x [1, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<["S - 1", 4], f32>
  %last = graph.slice %x [-1, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<[1, 4], f32>
  %reversed = graph.slice %x [9223372036854775807, 0] to [-9223372036854775808, 4] by [-1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[10, 4], bf16>, %s: !graph.tensor<["S + 2"], ui8>, %r: !graph.tensor<[], i1>) {
// CHECK-NEXT:     %steps = graph.slice %x [1, 0] to [9, 4] by [3, 1] : !graph.tensor<[10, 4], bf16> -> !graph.tensor<[3, 4], bf16>
// CHECK-NEXT:     %from_end = graph.slice %x [-3, 0] to [10, -1] by [1, 1] : !graph.tensor<[10, 4], bf16> -> !graph.tensor<[3, 3], bf16>
// CHECK-NEXT:     %reversed = graph.slice %x [9, 3] to [-11, -5] by [-1, -1] : !graph.tensor<[10, 4], bf16> -> !graph.tensor<[10, 4], bf16>
// CHECK-NEXT:     %nothing = graph.slice %x [5, 0] to [5, 4] by [1, 1] {k} : !graph.tensor<[10, 4], bf16> -> !graph.tensor<[0, 4], bf16>
// CHECK-NEXT:     %symbolic = graph.slice %s [1] to [-1] by [1] : !graph.tensor<["S + 2"], ui8> -> !graph.tensor<[S], ui8>
// CHECK-NEXT:     %rank0 = graph.slice %r [] to [] by [] : !graph.tensor<[], i1> -> !graph.tensor<[], i1>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @open(%x: !graph.tensor<[S, 4], f32>) attributes {graph.least = {S = 2 : i64}} {
// CHECK-NEXT:     %rest = graph.slice %x [1, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<["S - 1", 4], f32>
// CHECK-NEXT:     %last = graph.slice %x [-1, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<[1, 4], f32>
// CHECK-NEXT:     %reversed = graph.slice %x [9223372036854775807, 0] to [-9223372036854775808, 4] by [-1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
