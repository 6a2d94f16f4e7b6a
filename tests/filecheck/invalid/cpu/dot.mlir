cpu.func @f(%n: index, %x: f32, %h: f16, %i: i32) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xf32>
  %b = cpu.reserve %n : !cpu.panels<7x16xf32, 16>
  %c = tile.full %x : tensor<4x16xf32>
  // expected: !cpu.buffer<4x8xf32> has 8 columns, !cpu.panels<7x16xf32, 16> has 7 rows
  %d = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xf32>, !cpu.panels<7x16xf32, 16>, tensor<4x16xf32> -> tensor<4x16xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f32, %h: f16, %i: i32) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xf32>
  %b = cpu.reserve %n : !cpu.panels<9x16xf32, 16>
  %c = tile.full %x : tensor<4x16xf32>
  // expected: !cpu.buffer<4x8xf32> has 8 columns, !cpu.panels<9x16xf32, 16> has 9 rows
  %d = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xf32>, !cpu.panels<9x16xf32, 16>, tensor<4x16xf32> -> tensor<4x16xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f32, %h: f16, %i: i32) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xf32>
  %b = cpu.buffer : !cpu.buffer<7x16xf32>
  %c = tile.full %x : tensor<4x16xf32>
  // expected: !cpu.buffer<4x8xf32> has 8 columns, !cpu.buffer<7x16xf32> has 7 rows
  %d = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xf32>, !cpu.buffer<7x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f32, %h: f16, %i: i32) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xf32>
  %b = cpu.reserve %n : !cpu.panels<8x16xf16, 16>
  %c = tile.full %x : tensor<4x16xf32>
  // expected: !cpu.buffer<4x8xf32> and !cpu.panels<8x16xf16, 16> hold different elements
  %d = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xf32>, !cpu.panels<8x16xf16, 16>, tensor<4x16xf32> -> tensor<4x16xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f32, %h: f16, %i: i32) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xf32>
  %b = cpu.reserve %n : !cpu.panels<8x16xf32, 16>
  %c = tile.full %x : tensor<4x16xf32>
  // expected: the result has the type of c, a tile of two axes, not tensor<4x16xf64>
  %d = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xf32>, !cpu.panels<8x16xf32, 16>, tensor<4x16xf32> -> tensor<4x16xf64>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f32, %h: f16, %i: i32) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xf32>
  %b = cpu.reserve %n : !cpu.panels<8x16xf32, 16>
  %c = tile.full %x : tensor<16xf32>
  // expected: the result has the type of c, a tile of two axes, not tensor<16xf32>
  %d = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xf32>, !cpu.panels<8x16xf32, 16>, tensor<16xf32> -> tensor<16xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f32, %h: f16, %i: i32) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xf32>
  %b = cpu.reserve %n : !cpu.panels<8x16xf32, 16>
  %c = tile.full %h : tensor<4x16xf16>
  // expected: dots of f32 do not accumulate in f16
  %d = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xf32>, !cpu.panels<8x16xf32, 16>, tensor<4x16xf16> -> tensor<4x16xf16>
  cpu.return
}
// -----
cpu.func @f(%n: index, %x: f32, %h: f16, %i: i32) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<4x8xi8>
  %b = cpu.reserve %n : !cpu.panels<8x16xi8, 16>
  %c = tile.full %x : tensor<4x16xf32>
  // expected: dots of i8 do not accumulate in f32
  %d = cpu.dot %a[%n], %b[%n, %n], %c : !cpu.buffer<4x8xi8>, !cpu.panels<8x16xi8, 16>, tensor<4x16xf32> -> tensor<4x16xf32>
  cpu.return
}
