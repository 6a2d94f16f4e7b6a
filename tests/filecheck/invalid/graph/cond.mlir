graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: a condition is one bool without axes
  %a = graph.cond %x then {
    graph.yield %x : !graph.tensor<[4], f32>
  } else {
    graph.yield %x : !graph.tensor<[4], f32>
  } : !graph.tensor<[4], f32> -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the first branch gives !graph.tensor<[4], f32>, not !graph.tensor<[], i1>
  %a = graph.cond %p then {
    graph.yield %p : !graph.tensor<[], i1>
  } else {
    graph.yield %x : !graph.tensor<[4], f32>
  } : !graph.tensor<[], i1> -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the second branch gives !graph.tensor<[4], f32>, not nothing
  %a = graph.cond %p then {
    graph.yield %x : !graph.tensor<[4], f32>
  } else {
    graph.yield
  } : !graph.tensor<[], i1> -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the first branch takes nothing, not !graph.tensor<[4], f32>
  %a = graph.cond %p then {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %x : !graph.tensor<[4], f32>
  } else {
    graph.yield %x : !graph.tensor<[4], f32>
  } : !graph.tensor<[], i1> -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the second branch ends with graph.yield
  %a = graph.cond %p then {
    graph.yield %x : !graph.tensor<[4], f32>
  } else {
  ^bb0:
  } : !graph.tensor<[], i1> -> (!graph.tensor<[4], f32>)
  graph.return
}
