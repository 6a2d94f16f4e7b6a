// expected: nv.semaphore_signal stands in an nv function, in no loop or branch of it
nv.semaphore_signal
// -----
nv.func @f() outputs 0 shapes [] grid [4] threads 32 {
  // expected: nv.semaphore_signal needs a counter, and a block for each program instance of the grid
  nv.semaphore_signal
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [4] threads 32 attributes {counters = 4 : i64} {
  // expected: cannot read IR
  nv.semaphore_signal 1
  nv.return
}
