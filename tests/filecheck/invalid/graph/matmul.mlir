graph.func @f(%a: !graph.tensor<[4], f32>) {
  // expected: expected at least 2 axes, the left operand has 1
  %y = graph.matmul %a, %a : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[M, K], f32>, %b: !graph.tensor<[L, N], f32>) {
  // expected: K and L are not known to be equal
  %y = graph.matmul %a, %b : !graph.tensor<[M, K], f32>, !graph.tensor<[L, N], f32> -> !graph.tensor<[M, N], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[2, 4, 4], f32>, %b: !graph.tensor<[3, 4, 4], f32>) {
  // expected: shapes do not broadcast: at axis -1, 2 and 3 differ
  %y = graph.matmul %a, %b : !graph.tensor<[2, 4, 4], f32>, !graph.tensor<[3, 4, 4], f32> -> !graph.tensor<[2, 4, 4], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[M, 4], f32>, %b: !graph.tensor<[4, N], f32>) {
  // expected: gives !graph.tensor<[M, N], f32>, not !graph.tensor<[N, M], f32>
  %y = graph.matmul %a, %b : !graph.tensor<[M, 4], f32>, !graph.tensor<[4, N], f32> -> !graph.tensor<[N, M], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[4, 4], f32>, %b: !graph.tensor<[4, 4], f16>) {
  // expected: matmul of f32 and f16: cast to one element type
  %y = graph.matmul %a, %b : !graph.tensor<[4, 4], f32>, !graph.tensor<[4, 4], f16> -> !graph.tensor<[4, 4], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[4, 4], i8>) {
  // expected: matmul of i8 does not give f32
  %y = graph.matmul %a, %a : !graph.tensor<[4, 4], i8>, !graph.tensor<[4, 4], i8> -> !graph.tensor<[4, 4], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[4, 4], f32>) {
  // expected: Expected 2 operands, but got 1
  %y = "graph.matmul"(%a) : (!graph.tensor<[4, 4], f32>) -> !graph.tensor<[4, 4], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[4, 4], f32>) {
  // expected: Expected ','
  %y = graph.matmul %a %a : !graph.tensor<[4, 4], f32>, !graph.tensor<[4, 4], f32> -> !graph.tensor<[4, 4], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[4, 4], f32>) {
  // expected: parts of a depth have a step, and only they have
  %y = graph.matmul %a, %a parts 2 : !graph.tensor<[4, 4], f32>, !graph.tensor<[4, 4], f32> -> !graph.tensor<[2, 4, 4], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[4, 4], f32>) {
  // expected: matrices are, in 1 or more, by a step of 1 or more
  %y = graph.matmul %a, %a parts 0 step 2 : !graph.tensor<[4, 4], f32>, !graph.tensor<[4, 4], f32> -> !graph.tensor<[0, 4, 4], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[2, 4, 4], f32>) {
  // expected: matrices are, in 1 or more, by a step of 1 or more
  %y = graph.matmul %a, %a parts 2 step 2 : !graph.tensor<[2, 4, 4], f32>, !graph.tensor<[2, 4, 4], f32> -> !graph.tensor<[2, 4, 4], f32>
  graph.return
}
// -----
graph.func @f(%a: !graph.tensor<[4, 4], f32>) {
  // expected: gives !graph.tensor<[2, 4, 4], f32>, not !graph.tensor<[4, 4], f32>
  %y = graph.matmul %a, %a parts 2 step 2 : !graph.tensor<[4, 4], f32>, !graph.tensor<[4, 4], f32> -> !graph.tensor<[4, 4], f32>
  graph.return
}
