nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: cannot read IR
  nv.cluster_sync unaligned
  nv.return
}
