graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: a loop that begins with !graph.tensor<[4], f32> gives !graph.tensor<[], i1>
  %a = graph.while (%x) if {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %p : !graph.tensor<[], i1>
  } do {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %y : !graph.tensor<[4], f32>
  } : (!graph.tensor<[4], f32>) -> (!graph.tensor<[], i1>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the condition gives one bool
  %a = graph.while (%x) if {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield
  } do {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %y : !graph.tensor<[4], f32>
  } : (!graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the condition gives !graph.tensor<[], i1>, not !graph.tensor<[], i1>, !graph.tensor<[], i1>
  %a = graph.while (%x) if {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %p, %p : !graph.tensor<[], i1>, !graph.tensor<[], i1>
  } do {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %y : !graph.tensor<[4], f32>
  } : (!graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: a condition is one bool without axes
  %a = graph.while (%x) if {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %y : !graph.tensor<[4], f32>
  } do {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %y : !graph.tensor<[4], f32>
  } : (!graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the body gives !graph.tensor<[4], f32>, not !graph.tensor<[], i1>
  %a = graph.while (%x) if {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %p : !graph.tensor<[], i1>
  } do {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %p : !graph.tensor<[], i1>
  } : (!graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>)
  graph.return
}
