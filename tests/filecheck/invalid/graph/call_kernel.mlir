graph.func @f() {
  // expected: @k must name a tile.func, it names nothing
  graph.call_kernel @k() : () -> ()
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
  tile.return
}
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: @k takes 1 inputs and gives 1 outputs; here are 1 and 0
  graph.call_kernel @k(%x) : (!graph.tensor<[S], f32>) -> ()
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
  tile.return
}
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: @k takes 1 inputs and gives 1 outputs; here are 0 and 2
  %a, %b = graph.call_kernel @k() : () -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32>)
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
  tile.return
}
graph.func @f(%x: !graph.tensor<[S], bf16>) {
  // expected: argument 0 of @k: expected !tile.view<1, f32, global>, got !graph.tensor<[S], bf16>
  %y = graph.call_kernel @k(%x) : (!graph.tensor<[S], bf16>) -> !graph.tensor<[S], f32>
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  tile.return
}
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: argument 1 of @k: expected index, got !graph.tensor<[S], f32>
  graph.call_kernel @k(%x, %x) : (!graph.tensor<[S], f32>, !graph.tensor<[S], f32>) -> ()
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [["2*N"], [N]] grid [1] {
  tile.return
}
graph.func @f(%x: !graph.tensor<[10], f32>) {
  // expected: argument 0 of @k: expected [2*N] = [8], got [10]
  %y = graph.call_kernel @k(%x) : (!graph.tensor<[10], f32>) -> !graph.tensor<[4], f32>
  graph.return
}
// -----
tile.func @k(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %i = arith.constant 0 : index
  %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.store %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: @k writes to an input; in a graph, inputs are values: make it an output
  graph.call_kernel @k(%x) : (!graph.tensor<[S], f32>) -> ()
  graph.return
}
// -----
// The kernel is checked first, wherever it stands.
graph.func @f() {
  graph.call_kernel @k() : () -> ()
  graph.return
}
// expected: property 'outputs' expected in operation 'tile.func'
"tile.func"() <{sym_name = "k"}> ({
  tile.return
}) : () -> ()
// -----
graph.func @f() {
  graph.call_kernel @k() : () -> ()
  graph.return
}
tile.func @k() outputs 0 shapes [] grid [] {
  // expected: Expected at least 2 operands, but got 0
  "tile.store"() : () -> ()
  tile.return
}
// -----
tile.func @k() outputs 0 shapes [] grid [] {
  tile.debug_print "here"
  tile.return
}
// expected: graph.call_kernel has the effect io, which @f does not declare
graph.func @f() {
  graph.call_kernel @k() : () -> ()
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: f32 should be of base attribute graph.tensor
  %y = graph.call_kernel @k(%x) : (!graph.tensor<[S], f32>) -> f32
  graph.return
}
// -----
graph.func @f() {
  // expected: Expected one of 'block', 'd', 'split', 'stages', 'swizzle', 'vector', 'warps'
  graph.call_kernel @k() config <blocks = [1]> : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: warps is given twice
  graph.call_kernel @k() config <warps = 1, warps = 2> : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: stages 0: expected a positive number
  graph.call_kernel @k() config <stages = 0> : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: block [16, -1]: sizes are positive
  graph.call_kernel @k() config <block = [16, -1]> : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: Expected integer literal
  graph.call_kernel @k() config <block = [true]> : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: swizzle twist: expected none or xor
  graph.call_kernel @k() config <swizzle = "twist"> : () -> ()
  graph.return
}
// -----
graph.func @f() {
  // expected: '<' expected
  graph.call_kernel @k() config warps = 3 : () -> ()
  graph.return
}
