// expected: nv.tma_commit is a part of an nv function
nv.tma_commit
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: cannot read IR
  nv.tma_commit 1
  nv.return
}
