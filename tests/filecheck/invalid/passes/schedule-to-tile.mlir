// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[], f32>) {
  %y = schedule.region<pointwise> <block = []> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[], f32>) {
    // expected: graph.reduce has no tile program yet
    %r = graph.reduce<sum> %u, [0] : !graph.tensor<[S], f32> -> !graph.tensor<[], f32>
    schedule.yield %r : !graph.tensor<[], f32>
  }
  graph.return %y : !graph.tensor<[], f32>
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[3], f32>, %y: !graph.tensor<[5], f32>) {
  // expected: a pointwise region gives results of one shape, here are 2
  %a, %b = schedule.region<pointwise> <block = [4]> (%u : !graph.tensor<[3], f32> = %x, %v : !graph.tensor<[5], f32> = %y) -> (!graph.tensor<[3], f32>, !graph.tensor<[5], f32>) {
    schedule.yield %u, %v : !graph.tensor<[3], f32>, !graph.tensor<[5], f32>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f() {
  // expected: a pointwise region gives results of one shape, here are 0
  schedule.region<pointwise> <block = []> () -> () {
    schedule.yield :
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f() {
  %a = schedule.region<pointwise> <block = [4]> () -> (!graph.tensor<[3], f32>) {
    // expected: has no tile program, only one number that fills it
    %r = graph.constant !graph.tensor<[3], f32> = [1.0, 2.0, 3.0]
    schedule.yield %r : !graph.tensor<[3], f32>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S], f32>) {
  %y = schedule.region<pointwise> <block = [16]> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], bf16, stochastic_round>) {
    // expected: stochastic rounding by element position has no tile program yet
    %r = graph.ew<cast> %u seed 3 : !graph.tensor<[S], f32> -> !graph.tensor<[S], bf16, stochastic_round>
    schedule.yield %r : !graph.tensor<[S], bf16, stochastic_round>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: a pointwise region of rank 1 needs a block of 1 sizes, got (16, 16)
  %y = schedule.region<pointwise> <block = [16, 16]> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], f32>) {
    schedule.yield %u : !graph.tensor<[S], f32>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: a pointwise region of rank 1 needs a block of 1 sizes, got None
  %y = schedule.region<pointwise> <> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], f32>) {
    schedule.yield %u : !graph.tensor<[S], f32>
  }
  graph.return
}
