cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x32xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  %o = cpu.buffer : !cpu.buffer<16x48xf32>
  // expected: !cpu.buffer<16x32xbf16> cannot be multiplied by !cpu.panels<64x48xbf16, 16, 2>
  cpu.matmul %a, %b[%n], %o[%n, %n] size [16, 16] : !cpu.buffer<16x32xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<16x48xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x64xf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  %o = cpu.buffer : !cpu.buffer<16x48xf32>
  // expected: !cpu.buffer<16x64xf16> cannot be multiplied by !cpu.panels<64x48xbf16, 16, 2>
  cpu.matmul %a, %b[%n], %o[%n, %n] size [16, 16] : !cpu.buffer<16x64xf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<16x48xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x64xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 32, 2>
  %o = cpu.buffer : !cpu.buffer<16x48xf32>
  // expected: !cpu.panels<64x48xbf16, 32, 2> is not packed for the matrix unit: 16 columns, 4 bytes deep
  cpu.matmul %a, %b[%n], %o[%n, %n] size [16, 16] : !cpu.buffer<16x64xbf16>, !cpu.panels<64x48xbf16, 32, 2>, !cpu.buffer<16x48xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x64xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16>
  %o = cpu.buffer : !cpu.buffer<16x48xf32>
  // expected: !cpu.panels<64x48xbf16, 16> is not packed for the matrix unit: 16 columns, 4 bytes deep
  cpu.matmul %a, %b[%n], %o[%n, %n] size [16, 16] : !cpu.buffer<16x64xbf16>, !cpu.panels<64x48xbf16, 16>, !cpu.buffer<16x48xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x64xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  %o = cpu.buffer : !cpu.buffer<16x48xf32>
  // expected: a strip has 16 or 32 rows and 16 columns or a multiple
  cpu.matmul %a, %b[%n], %o[%n, %n] size [16, 24] : !cpu.buffer<16x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<16x48xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x64xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  %o = cpu.buffer : !cpu.buffer<16x48xf32>
  // expected: a strip has 16 or 32 rows and 16 columns or a multiple
  cpu.matmul %a, %b[%n], %o[%n, %n] size [16] : !cpu.buffer<16x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<16x48xf32>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x64xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  %o = cpu.buffer : !cpu.buffer<16x48xf64>
  // expected: dots of bf16 do not accumulate in f64
  cpu.matmul %a, %b[%n], %o[%n, %n] size [16, 16] : !cpu.buffer<16x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<16x48xf64>
  cpu.return
}
// -----
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x64xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  %o = cpu.buffer : !cpu.buffer<16x48xi32>
  // expected: dots of bf16 do not accumulate in i32
  cpu.matmul %a, %b[%n], %o[%n, %n] size [16, 16] : !cpu.buffer<16x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<16x48xi32>
  cpu.return
}

// -----

cpu.func @half_a_depth(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<32x64xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  %out = cpu.buffer : !cpu.buffer<32x48xf32>
  // expected: a depth goes from one column to another, got 1 numbers
  cpu.matmul %a, %b[%n], %out[%n, %n] size [32, 16] depth %n : !cpu.buffer<32x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<32x48xf32>
  cpu.return
}
