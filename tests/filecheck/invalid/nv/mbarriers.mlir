nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected at least one mbarrier, got 0
  %a = nv.mbarriers : !nv.mbarriers<0>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: mbarriers are of a block or a cluster, not of a grid
  %a = nv.mbarriers : !nv.mbarriers<1, grid>
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  // expected: expected mbarriers of this block, got !nv.mbarriers<2, cluster>
  %a = nv.mbarriers : !nv.mbarriers<2, cluster>
  nv.return
}
