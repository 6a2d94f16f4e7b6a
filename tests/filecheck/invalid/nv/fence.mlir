nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected init or async, got all
  nv.fence<all>
  nv.return
}
