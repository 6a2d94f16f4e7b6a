graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[2], i32>, %u: !graph.tensor<[2, 8], f32>, %g: !graph.tensor<[2], f32>, %w: !graph.tensor<[2, 9], f32>) {
  // expected: axis 2
  %a = graph.scatter<set> %u into %x[%i], [2] : !graph.tensor<[2, 8], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[2], i32>, %u: !graph.tensor<[2, 8], f32>, %g: !graph.tensor<[2], f32>, %w: !graph.tensor<[2, 9], f32>) {
  // expected: unknown way to scatter div: ways are set, add, mul, max, min
  %a = graph.scatter<div> %u into %x[%i], [0] : !graph.tensor<[2, 8], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[2], i32>, %u: !graph.tensor<[2, 8], f32>, %g: !graph.tensor<[2], f32>, %w: !graph.tensor<[2, 9], f32>) {
  // expected: indices are integers, got f32
  %a = graph.scatter<set> %u into %x[%g], [0] : !graph.tensor<[2, 8], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[2], f32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[2], i32>, %u: !graph.tensor<[2, 8], f32>, %g: !graph.tensor<[2], f32>, %w: !graph.tensor<[2, 9], f32>) {
  // expected: updates are !graph.tensor<[2, 8], f32>, not !graph.tensor<[2, 9], f32>
  %a = graph.scatter<set> %w into %x[%i], [0] : !graph.tensor<[2, 9], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[2], i32>, %u: !graph.tensor<[2, 8], f32>, %g: !graph.tensor<[2], f32>, %w: !graph.tensor<[2, 9], f32>) {
  // expected: scattering into !graph.tensor<[S, 8], f32> gives the same type, not !graph.tensor<[S], f32>
  %a = graph.scatter<set> %u into %x[%i], [0] : !graph.tensor<[2, 8], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[2], i32>, %u: !graph.tensor<[2], f32>) {
  // expected: each axis, in order, has indices: 1 of them for axes [0, 1]
  %a = graph.scatter<set> %u into %x[%i], [0, 1] : !graph.tensor<[2], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
