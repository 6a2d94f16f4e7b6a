nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  // expected: a ring has at least one slot, not 0
  %a, %b = nv.advance %i, %i, 0
  nv.return
}
