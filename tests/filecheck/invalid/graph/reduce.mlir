graph.func @f(%x: !graph.tensor<[4, S], f32>) {
  // expected: unknown reduction mean
  %y = graph.reduce<mean> %x, [0] : !graph.tensor<[4, S], f32> -> !graph.tensor<[S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, S], f32>) {
  // expected: and reduces bool or int or uint elements, got f32
  %y = graph.reduce<and> %x, [0] : !graph.tensor<[4, S], f32> -> !graph.tensor<[S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, S], f32>) {
  // expected: axis 2 is out of range for 2 axes
  %y = graph.reduce<sum> %x, [2] : !graph.tensor<[4, S], f32> -> !graph.tensor<[S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, S], f32>) {
  // expected: [0, 0] names an axis twice
  %y = graph.reduce<sum> %x, [0, 0] : !graph.tensor<[4, S], f32> -> !graph.tensor<[S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, S], f32>) {
  // expected: gives !graph.tensor<[1, S], f32>, not !graph.tensor<[S], f32>
  %y = graph.reduce<sum> %x, [0] keepdims : !graph.tensor<[4, S], f32> -> !graph.tensor<[S], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, S], f32>) {
  // expected: graph.reduce gives elements of f32, not f64
  %y = graph.reduce<sum> %x, [0] : !graph.tensor<[4, S], f32> -> !graph.tensor<[S], f64>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, S], f32>) {
  // expected: Expected ':'
  %y = graph.reduce<sum> %x, [0] keepdims true : !graph.tensor<[4, S], f32> -> !graph.tensor<[1, S], f32>
  graph.return
}
