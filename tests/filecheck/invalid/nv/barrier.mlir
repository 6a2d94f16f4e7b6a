// expected: nv.barrier is a part of an nv function
nv.barrier
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: cannot read IR
  nv.barrier 1
  nv.return
}
