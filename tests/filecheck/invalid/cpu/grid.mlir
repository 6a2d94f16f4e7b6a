cpu.func @f() shapes [] grid [1] {
  // expected: axis 1 is out of range for rank 1
  %n = cpu.grid 1
  cpu.return
}
// -----
cpu.func @f() shapes [] grid [1, 2] {
  // expected: axis -1 is out of range for rank 2
  %n = cpu.grid -1
  cpu.return
}
// -----
// Three axes at most, wherever it stands.
// expected: axis 3 is out of range for rank 3
%n = cpu.grid 3
// -----
cpu.func @f() shapes [] grid [1] {
  // expected: Expected attribute i64 but got i32
  %n = "cpu.grid"() <{axis = 0 : i32}> : () -> index
  cpu.return
}
