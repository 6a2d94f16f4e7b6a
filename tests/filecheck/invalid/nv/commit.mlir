// expected: nv.commit is a part of an nv function
nv.commit
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: cannot read IR
  nv.commit 1
  nv.return
}
