graph.func @f() {
  // expected: an elementwise op has at least one operand
  %y = graph.ew<add> : -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>, %y: !graph.tensor<[5], f32>) {
  // expected: gives !graph.tensor<[5], f32>, not !graph.tensor<[4], f32>
  %z = graph.ew<add> %x, %y : !graph.tensor<[4], f32>, !graph.tensor<[5], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: 'twist' is not an elementwise function
  %y = graph.ew<twist> %x : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: add expects 2 operands of one type
  %y = graph.ew<add> %x : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], i8>) {
  // expected: exp expects one operand, float; got i8
  %y = graph.ew<exp> %x : !graph.tensor<[4], i8> -> !graph.tensor<[4], i8>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: exp of f32 gives f32, not bf16
  %y = graph.ew<exp> %x : !graph.tensor<[4], f32> -> !graph.tensor<[4], bf16>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: stochastic rounding needs a seed
  %y = graph.ew<cast> %x : !graph.tensor<[4], f32> -> !graph.tensor<[4], bf16, stochastic_round>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: is out of range for type i64
  %y = graph.ew<cast> %x seed 99999999999999999999 : !graph.tensor<[4], f32> -> !graph.tensor<[4], bf16>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: seed is a property of graph.ew; an attribute may not have its name
  %y = graph.ew<exp> %x {seed = 4 : i64} : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: "exp" should be of base attribute ts.name
  %y = "graph.ew"(%x) <{fn = "exp"}> : (!graph.tensor<[4], f32>) -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: '<' expected
  %y = graph.ew exp %x : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: identifier expected for a name
  %y = graph.ew<3> %x : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: f32) {
  // expected: f32 should be of base attribute graph.tensor
  %y = graph.ew<exp> %x : f32 -> !graph.tensor<[], f32>
  graph.return
}
