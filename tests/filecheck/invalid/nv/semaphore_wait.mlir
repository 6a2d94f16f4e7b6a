// expected: nv.semaphore_wait stands in an nv function, in no loop or branch of it
nv.semaphore_wait
// -----
nv.func @f() outputs 0 shapes [] grid [4] threads 32 {
  // expected: nv.semaphore_wait needs a counter, and a block for each program instance of the grid
  nv.semaphore_wait
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [4] threads 32 attributes {counters = 4 : i64} {
  // expected: cannot read IR
  nv.semaphore_wait 1
  nv.return
}
