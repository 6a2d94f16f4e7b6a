tile.func @k(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid ["(N + 15)//16"] {
  tile.return
}
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: the grid is [(S + 15)//16] for these sizes, not #ts.sizes<[S]>
  schedule.launch @k grid <[S]> config <>(%x) : (!graph.tensor<[S], f32>) -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: @f must name a tile.func, it names graph.func
  schedule.launch @f grid <[]> config <>() : () -> ()
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
graph.func @f() {
  // expected: @k takes 1 inputs and gives 0 outputs; here are 0 and 0
  schedule.launch @k grid <[1]> config <>() : () -> ()
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
graph.func @f(%x: f32) {
  // expected: argument 0 of @k: expected !tile.view<1, f32, global>, got f32
  schedule.launch @k grid <[1]> config <>(%x) : (f32) -> ()
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>) outputs 0 shapes [[8]] grid [1] {
  tile.return
}
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: argument 0 of @k: expected [8] = [8], got [S]
  schedule.launch @k grid <[1]> config <>(%x) : (!graph.tensor<[S], f32>) -> ()
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %i = arith.constant 0 : index
  %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.atomic<sum> %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: @k writes to an input; in a graph, inputs are values: make it an output
  schedule.launch @k grid <[1]> config <>(%x) : (!graph.tensor<[S], f32>) -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: property 'config' expected in operation 'schedule.launch'
  "schedule.launch"() <{callee = @k, grid = #ts.sizes<[]>}> : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: '<' expected
  schedule.launch @k grid [1] config <>() : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: vector -1: expected a positive number
  schedule.launch @k grid <[1]> config <vector = -1>() : () -> ()
  graph.return
}
