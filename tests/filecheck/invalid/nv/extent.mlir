nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: axis 1 of a grid that has 1
  %a = nv.extent 1
  nv.return
}
