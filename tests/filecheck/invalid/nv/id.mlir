nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected one of thread, lane, warp, warpgroup, block, blocks, rank, got cluster
  %a = nv.id<cluster>
  nv.return
}
