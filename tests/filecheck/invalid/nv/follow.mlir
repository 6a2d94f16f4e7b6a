// expected: nv.follow stands in an nv.func itself: all blocks wait, whatever they do then
nv.follow
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
  nv.follow
  // expected: a kernel waits once for those in front of it
  nv.follow
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
  // expected: cannot read IR
  nv.follow 1
  nv.return
}
