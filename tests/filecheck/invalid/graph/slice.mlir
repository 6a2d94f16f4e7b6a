graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: axis 0 has step 0
  %y = graph.slice %x [0] to [4] by [0] : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: expected one entry of stops per axis, got 2 for 1 axis
  %y = graph.slice %x [0] to [4, 4] by [1] : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: 0:1:1 is not known to lie inside size S
  %y = graph.slice %x [0] to [1] by [1] : !graph.tensor<[S], f32> -> !graph.tensor<[1], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: gives !graph.tensor<[2], f32>, not !graph.tensor<[4], f32>
  %y = graph.slice %x [0] to [4] by [2] : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: graph.slice gives elements of f32, not f64
  %y = graph.slice %x [0] to [4] by [2] : !graph.tensor<[4], f32> -> !graph.tensor<[2], f64>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: Expected 'by'
  %y = graph.slice %x [0] to [4] : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: slice: expected one entry of steps per axis, got 0 for 1 axis
  %y = graph.slice %x [0] to [4] by [] : !graph.tensor<[4], f32> -> !graph.tensor<[2], f32>
  graph.return
}
