graph.func @f(%x: !graph.tensor<[S, 8], f32>, %b: !graph.tensor<[S], i1>) {
  // expected: axis 2
  %a = graph.cumulate<sum> %x, 2 : !graph.tensor<[S, 8], f32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %b: !graph.tensor<[S], i1>) {
  // expected: unknown cumulation xor
  %a = graph.cumulate<xor> %x, 1 : !graph.tensor<[S, 8], f32> -> !graph.tensor<[S, 8], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %b: !graph.tensor<[S], i1>) {
  // expected: sum reduces float or int or uint elements, got bool
  %a = graph.cumulate<sum> %b, 0 : !graph.tensor<[S], i1> -> !graph.tensor<[S], i1>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S, 8], f32>, %b: !graph.tensor<[S], i1>) {
  // expected: cumulating !graph.tensor<[S, 8], f32> gives the same type, not !graph.tensor<[S], f32>
  %a = graph.cumulate<sum> %x, 0 : !graph.tensor<[S, 8], f32> -> !graph.tensor<[S], f32>
  graph.return
}
