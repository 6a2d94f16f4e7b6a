graph.func @f() effects ["state(s)"] {
  // expected: @s must name a graph.state, it names nothing
  %y = graph.state_read @s : !graph.tensor<[], f32>
  graph.return
}
// -----
graph.func @f() effects ["state(f)"] {
  // expected: @f must name a graph.state, it names graph.func
  %y = graph.state_read @f : !graph.tensor<[], f32>
  graph.return
}
// -----
graph.state @s : !graph.tensor<[4], f32>
graph.func @f() effects ["state(s)"] {
  // expected: @s does not hold a !graph.tensor<[], f32>
  %y = graph.state_read @s : !graph.tensor<[], f32>
  graph.return
}
// -----
// The slot is checked first, wherever it stands.
graph.func @f() effects ["state(s)"] {
  %y = graph.state_read @s : !graph.tensor<[], f32>
  graph.return
}
// expected: property 'type' expected in operation 'graph.state'
"graph.state"() <{sym_name = "s"}> : () -> ()
// -----
graph.func @f() effects ["state(s)"] {
  // expected: attribute expected
  %y = graph.state_read s : !graph.tensor<[], f32>
  graph.return
}
