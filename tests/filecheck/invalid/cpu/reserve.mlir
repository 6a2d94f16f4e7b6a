cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: panels hold matrices of rows and columns, got 3 sizes
  %p = cpu.reserve %n : !cpu.panels<2x4x4xf32, 16>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: sizes at the cpu level are numbers
  %p = cpu.reserve %n : !cpu.panels<4x?xf32, 16>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: f80 is not a Tessera element type
  %p = cpu.reserve %n : !cpu.panels<4x4xf80, 16>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: panels of width 0 and depth 1: both are at least 1
  %p = cpu.reserve %n : !cpu.panels<4x4xf32, 0>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: panels of width 16 and depth -2: both are at least 1
  %p = cpu.reserve %n : !cpu.panels<4x4xf32, 16, -2>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: Expected ','
  %p = cpu.reserve %n : !cpu.panels<4x4xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: Expected integer literal
  %p = cpu.reserve %n : !cpu.panels<4x4xf32, 16, true>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  // expected: !cpu.buffer<4x4xf32> should be of base attribute cpu.panels
  %p = cpu.reserve %n : !cpu.buffer<4x4xf32>
  cpu.return
}
