nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: blocks of this function have no cluster
  nv.cluster_sync
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: cannot read IR
  nv.cluster_sync unaligned
  nv.return
}
