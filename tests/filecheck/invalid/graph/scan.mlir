graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: a scan has one length, got
  %a = graph.scan <[4, 4]> from (%x) over () do {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %y : !graph.tensor<[4], f32>
  } : (!graph.tensor<[4], f32>), () -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: a scan of length 3 goes over 3 slices
  graph.scan <[3]> from () over (%x) do {
  ^bb0(%r: !graph.tensor<[], f32>):
    graph.yield
  } : (), (!graph.tensor<[4], f32>) -> ()
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: a scan that begins with !graph.tensor<[4], f32> gives !graph.tensor<[], i1>
  %a = graph.scan <[4]> from (%x) over () do {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %y : !graph.tensor<[4], f32>
  } : (!graph.tensor<[4], f32>), () -> (!graph.tensor<[], i1>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: a scan of length 3 stacks 3 slices
  %a = graph.scan <[3]> from () over () do {
  graph.yield %x : !graph.tensor<[4], f32>
  } : (), () -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the body takes !graph.tensor<[4], f32>, !graph.tensor<[], f32>, not !graph.tensor<[4], f32>
  %a = graph.scan <[4]> from (%x) over (%x) do {
  ^bb0(%y: !graph.tensor<[4], f32>):
    graph.yield %y : !graph.tensor<[4], f32>
  } : (!graph.tensor<[4], f32>), (!graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>)
  graph.return
}
// -----
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[4], f32>) {
  // expected: the body gives !graph.tensor<[4], f32>, not !graph.tensor<[], f32>
  %a = graph.scan <[4]> from (%x) over (%x) do {
  ^bb0(%y: !graph.tensor<[4], f32>, %r: !graph.tensor<[], f32>):
    graph.yield %r : !graph.tensor<[], f32>
  } : (!graph.tensor<[4], f32>), (!graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>)
  graph.return
}
