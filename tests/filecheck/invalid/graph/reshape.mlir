graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: the number of elements changes: 4 and 6 differ
  %y = graph.reshape %x : !graph.tensor<[4], f32> -> !graph.tensor<[2, 3], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: the number of elements changes: S and 2*S are not known to be equal
  %y = graph.reshape %x : !graph.tensor<[S], f32> -> !graph.tensor<["2*S"], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: graph.reshape gives elements of f32, not f32 @ saturate
  %y = graph.reshape %x : !graph.tensor<[4], f32> -> !graph.tensor<[2, 2], f32, saturate>
  graph.return
}
// -----
graph.func @f(%x: tensor<4xf32>) {
  // expected: tensor<4xf32> should be of base attribute graph.tensor
  %y = graph.reshape %x : tensor<4xf32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: Expected '->'
  %y = graph.reshape %x : !graph.tensor<[4], f32>, !graph.tensor<[4], f32>
  graph.return
}
