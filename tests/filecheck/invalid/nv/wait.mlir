nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected a number of groups, got -1
  nv.wait -1
  nv.return
}
