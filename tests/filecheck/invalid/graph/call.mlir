graph.func @f() {
  // expected: @g must name a graph.func, it names nothing
  graph.call @g() : () -> ()
  graph.return
}
// -----
graph.state @s : !graph.tensor<[], f32>
graph.func @f() {
  // expected: @s must name a graph.func, it names graph.state
  graph.call @s() : () -> ()
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: @f is a (!graph.tensor<[S], f32>) -> (), called with other argument types
  graph.call @f() : () -> ()
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: @f is a (!graph.tensor<[S], f32>) -> (), called for other result types
  %y = graph.call @f(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  graph.return
}
// -----
// The callee is checked first, wherever it stands.
graph.func @f() {
  graph.call @g() : () -> ()
  graph.return
}
// expected: property 'function_type' expected in operation 'graph.func'
"graph.func"() <{sym_name = "g", effects = []}> ({
  graph.return
}) : () -> ()
// -----
graph.func @f() {
  graph.call @g() : () -> ()
  graph.return
}
// expected: expected ArrayAttr attribute
"graph.func"() <{sym_name = "g", function_type = () -> (), effects = 3}> ({
  graph.return
}) : () -> ()
// -----
graph.func @f() {
  // expected: Expected SymbolRefAttr with no nested symbols
  graph.call @f::@g() : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: attribute expected
  graph.call f() : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: expected 0 operand types but had 1
  graph.call @f(%x) : () -> ()
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) {
  // expected: a graph has no recursion, and @f calls @f
  %y = graph.call @f(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  graph.return %y : !graph.tensor<[S], f32>
}
// -----
// By way of others, the shortest; @leaf and @start are innocent.
graph.func @leaf() {
  graph.return
}
graph.func @start() {
  graph.call @f() : () -> ()
  graph.return
}
graph.func @f() {
  graph.call @leaf() : () -> ()
  // expected: a graph has no recursion, and @f calls @g, which calls @f
  graph.call @g() : () -> ()
  graph.return
}
graph.func @g() {
  graph.call @leaf() : () -> ()
  graph.call @h() : () -> ()
  graph.call @f() : () -> ()
  graph.return
}
graph.func @h() {
  graph.call @f() : () -> ()
  graph.return
}
