// expected: nv.await_turn stands in an nv function, in no loop or branch of it
nv.await_turn
// -----
nv.func @f() outputs 0 shapes [] grid [4] threads 32 {
  // expected: nv.await_turn needs a counter, and a block for each program of the grid
  nv.await_turn
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [4] threads 32 attributes {counters = 4 : i64} {
  // expected: cannot read IR
  nv.await_turn 1
  nv.return
}
