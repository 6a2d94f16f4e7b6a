nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  // expected: expected 1 to 1048575 arrivals, got 0
  nv.mbarrier_init %b, 0 : !nv.mbarriers<2>
  nv.return
}
// -----
nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  %e = nv.mapa %b, %i : !nv.mbarriers<2> -> !nv.mbarriers<2, cluster>
  // expected: expected mbarriers of this block
  nv.mbarrier_init %e, 1 : !nv.mbarriers<2, cluster>
  nv.return
}
