// RUN: tessera opt %s | filecheck %s
// Open ends of symbolic axes are the extreme numbers; how small a symbol may be is said by the function.
graph.func @f(%x: !graph.tensor<[S, 4], f32>) attributes {graph.least = {S = 2 : i64}} {
  %rest = graph.slice %x [1, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<["S - 1", 4], f32>
  %last = graph.slice %x [-1, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<[1, 4], f32>
  %reversed = graph.slice %x [9223372036854775807, 0] to [-9223372036854775808, 4] by [-1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S, 4], f32>) attributes {graph.least = {S = 2 : i64}} {
// CHECK-NEXT:     %rest = graph.slice %x [1, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<["S - 1", 4], f32>
// CHECK-NEXT:     %last = graph.slice %x [-1, 0] to [9223372036854775807, 4] by [1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<[1, 4], f32>
// CHECK-NEXT:     %reversed = graph.slice %x [9223372036854775807, 0] to [-9223372036854775808, 4] by [-1, 1] : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
