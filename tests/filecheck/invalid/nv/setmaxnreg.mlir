nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected inc or dec, got set
  nv.setmaxnreg<set> 24
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: 24 to 256 registers, in steps of 8, not 100
  nv.setmaxnreg<inc> 100
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: 24 to 256 registers, in steps of 8, not 16
  nv.setmaxnreg<dec> 16
  nv.return
}
