nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  // expected: should be of base attribute nv.words
  nv.put %i, %b[%i] : !nv.mbarriers<2>
  nv.return
}
