graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: shapes do not broadcast: at axis -1, 4 and 3 differ
  %y = graph.broadcast %x : !graph.tensor<[4], f32> -> !graph.tensor<[2, 3], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>, %z: !graph.tensor<[T], f32>) {
  // expected: S and T are not known to be equal
  %y = graph.broadcast %x : !graph.tensor<[S], f32> -> !graph.tensor<[T], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: !graph.tensor<[4], f32> does not broadcast to !graph.tensor<[1], f32>
  %y = graph.broadcast %x : !graph.tensor<[4], f32> -> !graph.tensor<[1], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: graph.broadcast gives elements of f32, not bf16
  %y = graph.broadcast %x : !graph.tensor<[4], f32> -> !graph.tensor<[2, 4], bf16>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: Expected '->'
  %y = graph.broadcast %x : !graph.tensor<[4], f32>
  graph.return
}
