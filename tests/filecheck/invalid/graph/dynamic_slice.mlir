graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %v: !graph.tensor<[2], i32>, %g: !graph.tensor<[], f32>) {
  // expected: 1 starts for 2 axes
  %a = graph.dynamic_slice %x[%i] : !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32> -> !graph.tensor<[2, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %v: !graph.tensor<[2], i32>, %g: !graph.tensor<[], f32>) {
  // expected: a start is one whole number, not !graph.tensor<[2], i32>
  %a = graph.dynamic_slice %x[%i, %v] : !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32>, !graph.tensor<[2], i32> -> !graph.tensor<[2, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %v: !graph.tensor<[2], i32>, %g: !graph.tensor<[], f32>) {
  // expected: a start is one whole number, not !graph.tensor<[], f32>
  %a = graph.dynamic_slice %x[%i, %g] : !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32>, !graph.tensor<[], f32> -> !graph.tensor<[2, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %v: !graph.tensor<[2], i32>, %g: !graph.tensor<[], f32>) {
  // expected: [2] is no part of [S, 8]: they have other ranks
  %a = graph.dynamic_slice %x[%i, %i] : !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[2], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %v: !graph.tensor<[2], i32>, %g: !graph.tensor<[], f32>) {
  // expected: [2, 9] is no part of [S, 8]: 9 is above 8
  %a = graph.dynamic_slice %x[%i, %i] : !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[2, 9], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %v: !graph.tensor<[2], i32>, %g: !graph.tensor<[], f32>) {
  // expected: a slice of f32 does not give f64
  %a = graph.dynamic_slice %x[%i, %i] : !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[2, 8], f64>
  graph.return
}
