cpu.func @f() shapes [] grid [1] {
  // expected: a buffer has rows and columns, got 1 sizes
  %b = cpu.buffer : !cpu.buffer<4xf32>
  cpu.return
}
// -----
cpu.func @f() shapes [] grid [1] {
  // expected: sizes at the cpu level are numbers
  %b = cpu.buffer : !cpu.buffer<?x4xf32>
  cpu.return
}
// -----
cpu.func @f() shapes [] grid [1] {
  // expected: f80 is not a Tessera element type
  %b = cpu.buffer : !cpu.buffer<4x4xf80>
  cpu.return
}
// -----
cpu.func @f() shapes [] grid [1] {
  // expected: !cpu.buffer<4x4xf32> is not a Tessera element type
  %b = cpu.buffer : !cpu.buffer<4x4x!cpu.buffer<4x4xf32>>
  cpu.return
}
// -----
cpu.func @f() shapes [] grid [1] {
  // expected: tensor<4x4xf32> should be of base attribute cpu.buffer
  %b = cpu.buffer : tensor<4x4xf32>
  cpu.return
}
