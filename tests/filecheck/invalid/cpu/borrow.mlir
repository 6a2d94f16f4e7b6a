cpu.func @f(%n: index, %x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[], [M, 8], [N]] grid [1] {
  // expected: rows are borrowed from a view of rank 2, at two offsets
  %a = cpu.borrow %y[%n] : !tile.view<1, f32, global> -> !cpu.buffer<4x8xf32, dense>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[], [M, 8], [N]] grid [1] {
  // expected: rows are borrowed from a view of rank 2, at two offsets
  %a = cpu.borrow %x[%n] : !tile.view<2, f32, global> -> !cpu.buffer<4x8xf32, dense>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[], [M, 8], [N]] grid [1] {
  // expected: rows of !tile.view<2, f32, global> make a dense buffer of f32, not !cpu.buffer<4x8xf16, dense>
  %a = cpu.borrow %x[%n, %n] : !tile.view<2, f32, global> -> !cpu.buffer<4x8xf16, dense>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[], [M, 8], [N]] grid [1] {
  // expected: rows of !tile.view<2, f32, global> make a dense buffer of f32, not !cpu.buffer<4x8xf32>
  %a = cpu.borrow %x[%n, %n] : !tile.view<2, f32, global> -> !cpu.buffer<4x8xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[], [M, 8], [N]] grid [1] {
  // expected: only borrowed rows lie side by side
  %a = cpu.buffer : !cpu.buffer<4x8xf32, dense>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[], [M, 8], [N]] grid [1] {
  %a = cpu.borrow %x[%n, %n] : !tile.view<2, f32, global> -> !cpu.buffer<4x8xf32, dense>
  // expected: borrowed rows are only read
  cpu.clear %a : !cpu.buffer<4x8xf32, dense>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) shapes [[], [M, 8], [N]] grid [1] {
  %a = cpu.borrow %x[%n, %n] : !tile.view<2, f32, global> -> !cpu.buffer<4x8xf32, dense>
  %b = cpu.load %a[%n, %n] : !cpu.buffer<4x8xf32, dense> -> tensor<4x8xf32>
  // expected: borrowed rows are only read
  cpu.store %b, %a[%n, %n] : tensor<4x8xf32>, !cpu.buffer<4x8xf32, dense>
  cpu.return
}
