nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  %e = nv.mapa %b, %i : !nv.mbarriers<2> -> !nv.mbarriers<2, cluster>
  // expected: expected mbarriers of this block
  nv.mbarrier_wait %e[%i], %i : !nv.mbarriers<2, cluster>
  nv.return
}
