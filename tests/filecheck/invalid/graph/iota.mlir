graph.func @f() {
  // expected: axis 1 is out of range for rank 1
  %y = graph.iota 1 : !graph.tensor<[4], i32>
  graph.return
}
// -----
graph.func @f() {
  // expected: axis -1 is out of range for rank 1
  %y = graph.iota -1 : !graph.tensor<[4], i32>
  graph.return
}
// -----
graph.func @f() {
  // expected: axis 0 is out of range for rank 0
  %y = graph.iota 0 : !graph.tensor<[], i32>
  graph.return
}
// -----
graph.func @f() {
  // expected: iota counts in an integer type, got f32
  %y = graph.iota 0 : !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f() {
  // expected: iota counts in an integer type, got bool
  %y = graph.iota 0 : !graph.tensor<[4], i1>
  graph.return
}
// -----
graph.func @f() {
  // expected: Expected integer literal
  %y = graph.iota first : !graph.tensor<[4], i32>
  graph.return
}
