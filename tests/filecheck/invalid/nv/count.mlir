nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  // expected: counters have the numbers 0 to 15, not 16
  %a = nv.count 16, %i
  nv.return
}
