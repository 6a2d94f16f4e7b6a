// A graph function without a terminator.
// expected: a graph function ends with graph.return
graph.func @f() {
}
// -----
// A terminator of another dialect.
graph.func @f() {
  // expected: 'tile.return' expects parent op 'tile.func'
  tile.return
}
// -----
// expected: the function promises (f32) but returns ()
graph.func @f(%x: f32) -> (f32) {
  graph.return
}
// -----
// expected: the function promises () but returns (f32)
graph.func @f(%x: f32) {
  graph.return %x : f32
}
// -----
// expected: unknown effect surprise: effects are random, state, collective, io, memory
graph.func @f() effects [surprise] {
  graph.return
}
// -----
// expected: graph.print has the effect io, which @f does not declare
graph.func @f(%x: !graph.tensor<[4], f32>) effects [random] {
  graph.print "x", %x : !graph.tensor<[4], f32>
  graph.return
}
// -----
// A slot that is declared does not stand for another one.
// expected: graph.state_read has the effect state(b), which @f does not declare
graph.func @f() effects ["state(a)"] {
  %x = graph.state_read @b : !graph.tensor<[], f32>
  graph.return
}
graph.state @b : !graph.tensor<[], f32>
// -----
// expected: graph.func does not say what its effects are
graph.func @f() {
  graph.func @g() {
    graph.return
  }
  graph.return
}
// -----
// expected: the entry block takes f32 but the function type says i32
"graph.func"() <{sym_name = "f", function_type = (i32) -> (), effects = []}> ({
^bb0(%x: f32):
  graph.return
}) : () -> ()
// -----
// expected: expected a single block, but got 2 blocks
"graph.func"() <{sym_name = "f", function_type = () -> (), effects = []}> ({
^bb0:
  graph.return
^bb1:
  graph.return
}) : () -> ()
// -----
// expected: expected a single block, but got 0 blocks
"graph.func"() <{sym_name = "f", function_type = () -> (), effects = []}> ({
}) : () -> ()
// -----
// expected: Expected 1 region, but got 0
"graph.func"() <{sym_name = "f", function_type = () -> (), effects = []}> : () -> ()
// -----
// expected: property 'effects' expected in operation 'graph.func'
"graph.func"() <{sym_name = "f", function_type = () -> ()}> ({
  graph.return
}) : () -> ()
// -----
// expected: 3 : i64 should be of base attribute string
"graph.func"() <{sym_name = "f", function_type = () -> (), effects = [3]}> ({
  graph.return
}) : () -> ()
// -----
// expected: sym_name is a property of graph.func; an attribute may not have its name
graph.func @f() attributes {sym_name = "g"} {
  graph.return
}
// -----
// expected: Redefinition of symbol "f"
builtin.module {
  graph.func @f() {
    graph.return
  }
  graph.func @f() {
    graph.return
  }
}
// -----
// Values do not pass into a function from outside.
%x = arith.constant 1 : i32
// expected: Operation using value defined out of its IsolatedFromAbove parent
graph.func @f() {
  %y = arith.addi %x, %x : i32
  graph.return
}
// -----
graph.func @f() {
  // expected: operand 0 is used where it is not yet defined
  %y = arith.addi %x, %x : i32
  %x = arith.constant 1 : i32
  graph.return
}
// -----
graph.func @f() {
  // expected: values used but not defined: [%missing]
  %y = arith.addi %missing, %missing : i32
  graph.return
}
// -----
// expected: expect symbol name
graph.func f() {
  graph.return
}
// -----
// expected: Expected ':' after block argument name!
graph.func @f(%x) {
  graph.return
}
// -----
// expected: SSA value %x is already defined
graph.func @f(%x: f32, %x: f32) {
  graph.return
}
// -----
// expected: '(' expected
graph.func @f(%x: f32) -> f32 {
  graph.return %x : f32
}
// -----
// expected: identifier or string literal expected
graph.func @f() effects [3] {
  graph.return
}
// -----
// expected: Expected region!
graph.func @f()
graph.func @g() {
  graph.return
}
// -----
// expected: f80 is not a Tessera element type
graph.func @f(%x: !graph.tensor<[4], f80>) {
  graph.return
}
// -----
// expected: index is not a Tessera element type
graph.func @f(%x: !graph.tensor<[4], index>) {
  graph.return
}
// -----
// expected: a size is at least 0, got -3
graph.func @f(%x: !graph.tensor<["2 - 5"], f32>) {
  graph.return
}
// -----
// expected: identifier or string literal expected for a size
graph.func @f(%x: !graph.tensor<[-3], f32>) {
  graph.return
}
// -----
// expected: cannot read a size: expected a positive integer constant after //
graph.func @f(%x: !graph.tensor<["S//T"], f32>) {
  graph.return
}
// -----
// expected: expected a numerics policy after the comma
graph.func @f(%x: !graph.tensor<[4], f32, >) {
  graph.return
}
// -----
// expected: unknown policy careful: expected stochastic_round, saturate, accum, loss_scale, scaled
graph.func @f(%x: !graph.tensor<[4], f32, careful>) {
  graph.return
}
// -----
// expected: identifier expected for a numerics policy
graph.func @f(%x: !graph.tensor<[4], f32, saturate, 3>) {
  graph.return
}
// -----
// expected: expected an element type, such as f32
graph.func @f(%x: !graph.tensor<[4], f32, accum(f99)>) {
  graph.return
}
// -----
// expected: policy accum is given twice: f32 and f64
graph.func @f(%x: !graph.tensor<[4], bf16, accum(f32), accum(f64)>) {
  graph.return
}
// -----
// expected: the accumulator bf16 cannot hold every f32 value
graph.func @f(%x: !graph.tensor<[4], f32, accum(bf16)>) {
  graph.return
}
// -----
// expected: the loss scale must be a power of two
graph.func @f(%x: !graph.tensor<[4], f16, loss_scale(1000)>) {
  graph.return
}
// -----
// expected: argument 0 must be a graph tensor or a scalar, got !tile.view<1, f32, global>
graph.func @f(%x: !tile.view<1, f32, global>) {
  graph.return
}
// -----
// expected: unknown effect state(: effects are random, state, collective, io, memory
graph.func @f() effects ["state("] {
  graph.return
}
// -----
// expected: graph.broadcast gives !graph.tensor<[B, 4], f32>, and no argument of @f binds B
graph.func @f(%x: !graph.tensor<[4], f32>) {
  %y = graph.broadcast %x : !graph.tensor<[4], f32> -> !graph.tensor<[B, 4], f32>
  graph.return
}
