cpu.func @f(%n: index) shapes [[]] grid [1] {
  %p = cpu.reserve %n : !cpu.panels<4x4xf32, 16>
  // expected: !cpu.panels<4x4xf32, 16> should be of base attribute cpu.buffer
  cpu.clear %p : !cpu.panels<4x4xf32, 16>
  cpu.return
}
