graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %y: !graph.tensor<[2, 8], f32>, %z: !graph.tensor<[2, 9], f32>, %d: !graph.tensor<[2, 8], f64>) {
  // expected: 1 starts for 2 axes
  %a = graph.dynamic_update_slice %y into %x[%i] : !graph.tensor<[2, 8], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %y: !graph.tensor<[2, 8], f32>, %z: !graph.tensor<[2, 9], f32>, %d: !graph.tensor<[2, 8], f64>) {
  // expected: [2, 9] is no part of [S, 8]: 9 is above 8
  %a = graph.dynamic_update_slice %z into %x[%i, %i] : !graph.tensor<[2, 9], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %y: !graph.tensor<[2, 8], f32>, %z: !graph.tensor<[2, 9], f32>, %d: !graph.tensor<[2, 8], f64>) {
  // expected: put into !graph.tensor<[S, 8], f32> does not give !graph.tensor<[S, 8], f32>
  %a = graph.dynamic_update_slice %d into %x[%i, %i] : !graph.tensor<[2, 8], f64> into !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %i: !graph.tensor<[], i32>, %y: !graph.tensor<[2, 8], f32>, %z: !graph.tensor<[2, 9], f32>, %d: !graph.tensor<[2, 8], f64>) {
  // expected: put into !graph.tensor<[S, 8], f32> does not give !graph.tensor<[S, 9], f32>
  %a = graph.dynamic_update_slice %y into %x[%i, %i] : !graph.tensor<[2, 8], f32> into !graph.tensor<[S, 8], f32>, !graph.tensor<[], i32>, !graph.tensor<[], i32> -> !graph.tensor<[S, 9], f32>
  graph.return
}
