nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  %e = nv.mapa %b, %i : !nv.mbarriers<2> -> !nv.mbarriers<2, cluster>
  // expected: expected mbarriers of this block
  %g = nv.mapa %e, %i : !nv.mbarriers<2, cluster> -> !nv.mbarriers<2, cluster>
  nv.return
}
// -----
nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  // expected: in another block is not !nv.mbarriers<4, cluster>
  %g = nv.mapa %b, %i : !nv.mbarriers<2> -> !nv.mbarriers<4, cluster>
  nv.return
}
