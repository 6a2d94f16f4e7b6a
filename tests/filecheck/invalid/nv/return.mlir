builtin.module {
  // expected: 'nv.return' expects parent op 'nv.func'
  nv.return
}
// -----
nv.func @f(%n: index) outputs 0 shapes [[]] grid [1] threads 128 {
  // expected: Expected 0 operands, but got 1
  "nv.return"(%n) : (index) -> ()
}
