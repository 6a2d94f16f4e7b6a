graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: 'graph.yield' expects parent op to be one of
  graph.yield %x : !graph.tensor<[4], f32>
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>, %s: f32) {
  %a = graph.cond %p then {
    // expected: f32 should be of base attribute
    graph.yield %s : f32
  } else {
    graph.yield %x : !graph.tensor<[4], f32>
  } : !graph.tensor<[], i1> -> (!graph.tensor<[4], f32>)
  graph.return
}
