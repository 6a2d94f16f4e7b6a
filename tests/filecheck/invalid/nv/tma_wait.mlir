nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected 0 to 7 groups that are under way, got 8
  nv.tma_wait 8
  nv.return
}
