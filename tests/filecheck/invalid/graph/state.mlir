// expected: a state slot holds a graph tensor, not f32
graph.state @s : f32
// -----
// expected: a state slot holds a graph tensor, not "text"
graph.state @s : "text"
// -----
// expected: a state slot has constant sizes, got !graph.tensor<[S], f32>
graph.state @s : !graph.tensor<[S], f32>
// -----
// expected: property 'type' expected in operation 'graph.state'
"graph.state"() <{sym_name = "s"}> : () -> ()
// -----
// expected: Redefinition of symbol "s"
builtin.module {
  graph.state @s : !graph.tensor<[], f32>
  graph.state @s : !graph.tensor<[], f32>
}
// -----
// expected: expect symbol name
graph.state s : !graph.tensor<[], f32>
