graph.func @f(%x: !graph.tensor<[], f32>) effects ["state(s)"] {
  // expected: @s must name a graph.state, it names nothing
  graph.state_write @s, %x : !graph.tensor<[], f32>
  graph.return
}
// -----
graph.state @s : !graph.tensor<[], f64>
graph.func @f(%x: !graph.tensor<[], f32>) effects ["state(s)"] {
  // expected: @s does not hold a !graph.tensor<[], f32>
  graph.state_write @s, %x : !graph.tensor<[], f32>
  graph.return
}
// -----
graph.state @s : !graph.tensor<[], f32>
graph.func @f(%x: f32) effects ["state(s)"] {
  // expected: f32 should be of base attribute graph.tensor
  graph.state_write @s, %x : f32
  graph.return
}
// -----
graph.state @s : !graph.tensor<[], f32>
graph.func @f(%x: !graph.tensor<[], f32>) effects ["state(s)"] {
  // expected: Expected ','
  graph.state_write @s %x : !graph.tensor<[], f32>
  graph.return
}
