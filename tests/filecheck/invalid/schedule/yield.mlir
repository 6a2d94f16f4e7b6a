// expected: 'schedule.yield' expects parent op 'schedule.region'
schedule.yield :
// -----
graph.func @f() {
  // expected: 'schedule.yield' expects parent op 'schedule.region'
  schedule.yield :
}
// -----
graph.func @f() {
  schedule.region<pointwise> <> () -> () {
    // expected: 'schedule.yield' must be the last operation in its parent block
    schedule.yield :
    schedule.yield :
  }
  graph.return
}
// -----
graph.func @f() {
  schedule.region<pointwise> <> () -> () {
    %c = arith.constant 1 : i32
    // expected: i32 should be of base attribute graph.tensor
    schedule.yield %c : i32
  }
  graph.return
}
// -----
graph.func @f() {
  schedule.region<pointwise> <> () -> () {
    // expected: Expected ':'
    schedule.yield
  }
  graph.return
}
