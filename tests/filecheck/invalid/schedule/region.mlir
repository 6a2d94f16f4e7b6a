graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: a region ends with schedule.yield
  schedule.region<pointwise> <> () -> () {
  }
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: a region yields values of its result types
  %y = schedule.region<pointwise> <> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], f64>) {
    schedule.yield %u : !graph.tensor<[S], f32>
  }
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: a region yields values of its result types
  schedule.region<pointwise> <> (%u : !graph.tensor<[S], f32> = %x) -> () {
    schedule.yield %u : !graph.tensor<[S], f32>
  }
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: the region's arguments have the types of its operands
  %y = "schedule.region"(%x) <{kind = #ts.name<pointwise>, config = #schedule.config<>}> ({
  ^bb0(%u: !graph.tensor<[S], f64>):
    schedule.yield %u : !graph.tensor<[S], f64>
  }) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f64>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: the region's arguments have the types of its operands
  "schedule.region"(%x) <{kind = #ts.name<pointwise>, config = #schedule.config<>}> ({
    schedule.yield :
  }) : (!graph.tensor<[S], f32>) -> ()
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) effects [io] {
  // expected: a region holds pure ops only; effects stay outside, in order
  schedule.region<pointwise> <> (%u : !graph.tensor<[S], f32> = %x) -> () {
    graph.print "x", %u : !graph.tensor<[S], f32>
    schedule.yield :
  }
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: Operation using value defined out of its IsolatedFromAbove parent
  %y = schedule.region<pointwise> <> () -> (!graph.tensor<[S], f32>) {
    schedule.yield %x : !graph.tensor<[S], f32>
  }
  graph.return
}
// -----
graph.func @f(%x: f32) {
  // expected: f32 should be of base attribute graph.tensor
  schedule.region<pointwise> <> (%u : f32 = %x) -> () {
    schedule.yield :
  }
  graph.return
}
// -----
graph.func @f() {
  // expected: expected a single block, but got 0 blocks
  "schedule.region"() <{kind = #ts.name<pointwise>, config = #schedule.config<>}> ({
  }) : () -> ()
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: operand is used with type !graph.tensor<[T], f32>
  schedule.region<pointwise> <> (%u : !graph.tensor<[T], f32> = %x) -> () {
    schedule.yield :
  }
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: Expected '='
  schedule.region<pointwise> <> (%u : !graph.tensor<[S], f32>) -> () {
    schedule.yield :
  }
  graph.return
}
// -----
graph.func @f() {
  // expected: '<' expected
  schedule.region<pointwise> () -> () {
    schedule.yield :
  }
  graph.return
}
// -----
graph.func @f() {
  // expected: unknown kind of region columns: kinds are pointwise, rows, matmul, online
  schedule.region<columns> <> () -> () {
    schedule.yield :
  }
  graph.return
}
// -----
graph.func @f() {
  // expected: '<' expected
  schedule.region () -> () {
    schedule.yield :
  }
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: split 0: expected a positive number
  %y = schedule.region<pointwise> <block = [8], split = 0> (%u : !graph.tensor<[S], f32> = %x) -> (!graph.tensor<[S], f32>) {
    schedule.yield %u : !graph.tensor<[S], f32>
  }
  graph.return
}
