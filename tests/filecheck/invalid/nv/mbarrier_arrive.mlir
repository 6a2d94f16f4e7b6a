nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %w = nv.words : !nv.words<2>
  // expected: !nv.words<2> should be of base attribute nv.mbarriers
  nv.mbarrier_arrive %w[%i] : !nv.words<2>
  nv.return
}
