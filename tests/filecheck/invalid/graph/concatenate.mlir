graph.func @f() {
  // expected: expected at least one array
  %y = graph.concatenate axis 0 : -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: axis 1 is out of range for 1 axis
  %y = graph.concatenate %x, %x axis 1 : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>, %y: !graph.tensor<[2, 2], f32>) {
  // expected: input 0 has 1 axis, input 1 has 2
  %z = graph.concatenate %x, %y axis 0 : !graph.tensor<[4], f32>, !graph.tensor<[2, 2], f32> -> !graph.tensor<[8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, S], f32>, %y: !graph.tensor<[4, T], f32>) {
  // expected: inputs 0 and 1 must agree at axis 1: S and T are not known to be equal
  %z = graph.concatenate %x, %y axis 0 : !graph.tensor<[4, S], f32>, !graph.tensor<[4, T], f32> -> !graph.tensor<[8, S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: concatenation gives !graph.tensor<[8], f32>, not !graph.tensor<[9], f32>
  %y = graph.concatenate %x, %x axis 0 : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[9], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>, %y: !graph.tensor<[4], f16>) {
  // expected: concatenation gives elements of f16, not f32
  %z = graph.concatenate %x, %y axis 0 : !graph.tensor<[4], f32>, !graph.tensor<[4], f16> -> !graph.tensor<[8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: Expected 'axis'
  %y = graph.concatenate %x, %x : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[8], f32>
  graph.return
}
