graph.func @f(%x: !graph.tensor<[2, S], f32>) {
  // expected: [1, 1] names an axis twice
  %y = graph.transpose %x, [1, 1] : !graph.tensor<[2, S], f32> -> !graph.tensor<[S, S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[2, S], f32>) {
  // expected: axis 2 is out of range for 2 axes
  %y = graph.transpose %x, [0, 2] : !graph.tensor<[2, S], f32> -> !graph.tensor<[2, S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[2, S], f32>) {
  // expected: expected a permutation of 2 axes, got [1]
  %y = graph.transpose %x, [1] : !graph.tensor<[2, S], f32> -> !graph.tensor<[S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[2, S], f32>) {
  // expected: gives !graph.tensor<[S, 2], f32>, not !graph.tensor<[2, S], f32>
  %y = graph.transpose %x, [1, 0] : !graph.tensor<[2, S], f32> -> !graph.tensor<[2, S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[2, S], f32>) {
  // expected: graph.transpose gives elements of f32, not f16
  %y = graph.transpose %x, [1, 0] : !graph.tensor<[2, S], f32> -> !graph.tensor<[S, 2], f16>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[2, S], f32>) {
  // expected: a number does not fit its type
  %y = graph.transpose %x, [0, 99999999999999999999] : !graph.tensor<[2, S], f32> -> !graph.tensor<[2, S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[2, S], f32>) {
  // expected: Expected attribute i64 but got i32
  %y = "graph.transpose"(%x) <{permutation = array<i32: 1, 0>}> : (!graph.tensor<[2, S], f32>) -> !graph.tensor<[S, 2], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[2, S], f32>) {
  // expected: '[' expected
  %y = graph.transpose %x, 1 : !graph.tensor<[2, S], f32> -> !graph.tensor<[2, S], f32>
  graph.return
}
