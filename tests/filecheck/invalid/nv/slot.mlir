nv.func @f(%i: index) outputs 0 shapes [[]] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x32xbf16, 64>
  // expected: a slot of !nv.shared<64x32xbf16, 64> is not
  %b = nv.slot %a[%i] : !nv.shared<64x32xbf16, 64> -> !nv.shared<64x32xbf16, 64>
  nv.return
}
