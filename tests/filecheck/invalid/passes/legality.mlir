// options: --level schedule
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: graph.ew is not legal in a function at the schedule level
  %y = graph.ew<exp> %x : !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
  graph.return
}
// -----
// options: --level tile
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: schedule.region is not legal in a function at the tile level
  %y = schedule.region<pointwise> <> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], f32>) {
    schedule.yield %u : !graph.tensor<[S], f32>
  }
  graph.return
}
// -----
// options: --level graph
tile.func @k() outputs 0 shapes [] grid [] {
  tile.return
}
graph.func @f() {
  // expected: schedule.launch is not legal in a function at the graph level
  schedule.launch @k grid <[]> config <>() : () -> ()
  graph.return
}
// -----
// options: --level graph
tile.func @k(%c: f32) outputs 0 shapes [[]] grid [] {
  // expected: tile.full gives a tile with a layout at the graph level
  %t = tile.full %c : tensor<4xf32, "layout">
  tile.return
}
// -----
// options: --level graph
// expected: arith.constant is not legal in a module at the graph level
%c = arith.constant 1 : i32
// -----
// options: -p melt
// expected: unknown pass melt
builtin.module {}
// -----
// options: -p "cse{"
// expected: cannot read the passes 'cse{'
builtin.module {}
