graph.func @f() effects [random] {
  // expected: unknown distribution poisson: uniform or normal
  %y = graph.random<poisson> : !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f() effects [random] {
  // expected: random numbers are floats, got i8
  %y = graph.random<normal> : !graph.tensor<[4], i8>
  graph.return
}
// -----
graph.func @f() effects [random] {
  // expected: f32 should be of base attribute graph.tensor
  %y = graph.random<normal> : f32
  graph.return
}
// -----
graph.func @f() effects [random] {
  // expected: '<' expected
  %y = graph.random normal : !graph.tensor<[4], f32>
  graph.return
}
