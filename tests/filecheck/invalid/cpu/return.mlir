builtin.module {
  // expected: 'cpu.return' expects parent op 'cpu.func'
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: Expected 0 operands, but got 1
  "cpu.return"(%n) : (index) -> ()
}
