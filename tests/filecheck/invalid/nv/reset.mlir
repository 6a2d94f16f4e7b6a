nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: counters have the numbers 0 to 15, not -1
  nv.reset -1
  nv.return
}
