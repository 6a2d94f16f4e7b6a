// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S, S], f32>) -> (!graph.tensor<[S, S], f32>) {
  %y = schedule.region<pointwise> <block = [16, 16]> (%u : !graph.tensor<[S, S], f32> = %x) -> (!graph.tensor<[S, S], f32>) {
    // expected: graph.matmul has no tile function yet
    %r = graph.matmul %u, %u : !graph.tensor<[S, S], f32>, !graph.tensor<[S, S], f32> -> !graph.tensor<[S, S], f32>
    schedule.yield %r : !graph.tensor<[S, S], f32>
  }
  graph.return %y : !graph.tensor<[S, S], f32>
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S, T], f32>, %y: !graph.tensor<[S, U], f32>) -> (!graph.tensor<[S], f32>) {
  %z = schedule.region<rows> <block = [16, 16]> (%u : !graph.tensor<[S, T], f32> = %x, %v : !graph.tensor<[S, U], f32> = %y) -> (!graph.tensor<[S], f32>) {
    %a = graph.reduce<sum> %u, [1] : !graph.tensor<[S, T], f32> -> !graph.tensor<[S], f32>
    // expected: the reductions of a region fold the same axes
    %b = graph.reduce<sum> %v, [1] : !graph.tensor<[S, U], f32> -> !graph.tensor<[S], f32>
    %r = graph.ew<add> %a, %b : !graph.tensor<[S], f32>, !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
    schedule.yield %r : !graph.tensor<[S], f32>
  }
  graph.return %z : !graph.tensor<[S], f32>
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S, S, S], f32>) -> (!graph.tensor<[S, S, S], f32>) {
  // expected: tiles have at most two axes
  %y = schedule.region<pointwise> <block = [16, 16, 16]> (%u : !graph.tensor<[S, S, S], f32> = %x) -> (!graph.tensor<[S, S, S], f32>) {
    schedule.yield %u : !graph.tensor<[S, S, S], f32>
  }
  graph.return %y : !graph.tensor<[S, S, S], f32>
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S, S], f32>) -> (!graph.tensor<[S, S], f32>) {
  // expected: an online region has two matmuls with exponentials of the first as weights of the second; here are none
  %y = schedule.region<online> <block = [16, 16]> (%u : !graph.tensor<[S, S], f32> = %x) -> (!graph.tensor<[S, S], f32>) {
    %r = graph.matmul %u, %u : !graph.tensor<[S, S], f32>, !graph.tensor<[S, S], f32> -> !graph.tensor<[S, S], f32>
    schedule.yield %r : !graph.tensor<[S, S], f32>
  }
  graph.return %y : !graph.tensor<[S, S], f32>
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[3], f32>, %y: !graph.tensor<[5], f32>) {
  // expected: the results of a region come from one iteration space; this one does not
  %a, %b = schedule.region<pointwise> <block = [4]> (%u : !graph.tensor<[3], f32> = %x, %v : !graph.tensor<[5], f32> = %y) -> (!graph.tensor<[3], f32>, !graph.tensor<[5], f32>) {
    schedule.yield %u, %v : !graph.tensor<[3], f32>, !graph.tensor<[5], f32>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f() {
  // expected: a region without results has nothing to iterate over
  schedule.region<pointwise> <block = []> () -> () {
    schedule.yield :
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f() {
  %a = schedule.region<pointwise> <block = [4]> () -> (!graph.tensor<[3], f32>) {
    // expected: has no tile function, only one number that fills it
    %r = graph.constant !graph.tensor<[3], f32> = [1.0, 2.0, 3.0]
    schedule.yield %r : !graph.tensor<[3], f32>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S], f32>) {
  %y = schedule.region<pointwise> <block = [16]> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], bf16, stochastic_round>) {
    // expected: stochastic rounding by element position has no tile function yet
    %r = graph.ew<cast> %u seed 3 : !graph.tensor<[S], f32> -> !graph.tensor<[S], bf16, stochastic_round>
    schedule.yield %r : !graph.tensor<[S], bf16, stochastic_round>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: a region over [S] needs a block of 1 sizes, got (16, 16)
  %y = schedule.region<pointwise> <block = [16, 16]> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], f32>) {
    schedule.yield %u : !graph.tensor<[S], f32>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: a region over [S] needs a block of 1 sizes, got None
  %y = schedule.region<pointwise> <> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], f32>) {
    schedule.yield %u : !graph.tensor<[S], f32>
  }
  graph.return
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[8, 4], f32>) -> (!graph.tensor<[8, 4], f32>) {
  // expected: a matmul region has one graph.matmul, here are 0
  %y = schedule.region<matmul> <> (%u : !graph.tensor<[8, 4], f32> = %x) -> (!graph.tensor<[8, 4], f32>) {
    %r = graph.ew<neg> %u : !graph.tensor<[8, 4], f32> -> !graph.tensor<[8, 4], f32>
    schedule.yield %r : !graph.tensor<[8, 4], f32>
  }
  graph.return %y : !graph.tensor<[8, 4], f32>
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[8, 8], f32>) -> (!graph.tensor<[8, 8], f32>) {
  // expected: a matmul region has a block of three sizes, rows, columns and depth, got [64, 64]
  %y = schedule.region<matmul> <block = [64, 64]> (%u : !graph.tensor<[8, 8], f32> = %x) -> (!graph.tensor<[8, 8], f32>) {
    %r = graph.matmul %u, %u : !graph.tensor<[8, 8], f32>, !graph.tensor<[8, 8], f32> -> !graph.tensor<[8, 8], f32>
    schedule.yield %r : !graph.tensor<[8, 8], f32>
  }
  graph.return %y : !graph.tensor<[8, 8], f32>
}
// -----
// options: -p schedule-to-tile
graph.func @f(%x: !graph.tensor<[8, 8], f32>) -> (!graph.tensor<[8], f32>) {
  // expected: a result of a matmul region is not made of its matmul, or not all of it
  %y = schedule.region<matmul> <> (%u : !graph.tensor<[8, 8], f32> = %x) -> (!graph.tensor<[8], f32>) {
    %r = graph.matmul %u, %u : !graph.tensor<[8, 8], f32>, !graph.tensor<[8, 8], f32> -> !graph.tensor<[8, 8], f32>
    %s = graph.reduce<sum> %r, [1] : !graph.tensor<[8, 8], f32> -> !graph.tensor<[8], f32>
    schedule.yield %s : !graph.tensor<[8], f32>
  }
  graph.return %y : !graph.tensor<[8], f32>
}
