// expected: nv.pass_turn stands in an nv function, in no loop or branch of it
nv.pass_turn
// -----
nv.func @f() outputs 0 shapes [] grid [4] threads 32 {
  // expected: nv.pass_turn needs a counter, and a block for each program of the grid
  nv.pass_turn
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [4] threads 32 attributes {counters = 4 : i64} {
  // expected: cannot read IR
  nv.pass_turn 1
  nv.return
}
