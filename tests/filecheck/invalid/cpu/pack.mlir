cpu.func @f(%n: index, %x: !tile.view<1, f32, global>) shapes [[], [N]] grid [1] {
  %p = cpu.reserve %n : !cpu.panels<4x4xf32, 16>
  // expected: a matrix is packed from a view of rank 2, at two offsets
  cpu.pack %x[%n], %p[%n] : !tile.view<1, f32, global>, !cpu.panels<4x4xf32, 16>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: !tile.view<2, f32, global>) shapes [[], [M, N]] grid [1] {
  %p = cpu.reserve %n : !cpu.panels<4x4xf32, 16>
  // expected: a matrix is packed from a view of rank 2, at two offsets
  cpu.pack %x[%n, %n, %n], %p[%n] : !tile.view<2, f32, global>, !cpu.panels<4x4xf32, 16>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %p = cpu.reserve %n : !cpu.panels<4x4xf32, 16>
  // expected: !cpu.panels<4x4xf32, 16> should be of base attribute tile.view
  cpu.pack %p[%n, %n], %p[%n] : !cpu.panels<4x4xf32, 16>, !cpu.panels<4x4xf32, 16>
  cpu.return
}
