nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: cannot read IR
  nv.warp_sync 3
  nv.return
}
// -----
// expected: nv.warp_sync is a part of an nv function
nv.warp_sync
