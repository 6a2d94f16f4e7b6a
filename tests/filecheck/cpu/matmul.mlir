// RUN: tessera opt %s | filecheck %s
// Strips of 16 or 32 rows by the matrix unit: put into a buffer, or added to what it holds.
cpu.func @f(%n: index, %row: index, %col: index, %live: index) shapes [[], [], [], []] grid [1] {
  %a = cpu.buffer : !cpu.buffer<32x64xbf16>
  %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  %out = cpu.buffer : !cpu.buffer<32x48xf32>
  cpu.matmul %a, %b[%n], %out[%row, %col] size [32, 48] : !cpu.buffer<32x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<32x48xf32>
  cpu.matmul added %a, %b[%n], %out[%row, %col] size [32, 16] depth %n, %live {k} : !cpu.buffer<32x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<32x48xf32>
  cpu.return
}
cpu.func @whole_numbers(%n: index) shapes [[]] grid [1] {
  %a = cpu.buffer : !cpu.buffer<16x20xi8>
  %b = cpu.reserve %n : !cpu.panels<20x7xi8, 16, 4>
  %out = cpu.buffer : !cpu.buffer<16x7xi32>
  cpu.matmul added %a, %b[%n], %out[%n, %n] size [16, 16] : !cpu.buffer<16x20xi8>, !cpu.panels<20x7xi8, 16, 4>, !cpu.buffer<16x7xi32>
  %u = cpu.buffer : !cpu.buffer<16x20xui8>
  %v = cpu.reserve %n : !cpu.panels<20x7xui8, 16, 4>
  %w = cpu.buffer : !cpu.buffer<16x7xui32>
  cpu.matmul %u, %v[%n], %w[%n, %n] size [16, 16] : !cpu.buffer<16x20xui8>, !cpu.panels<20x7xui8, 16, 4>, !cpu.buffer<16x7xui32>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%n: index, %row: index, %col: index, %live: index) shapes [[], [], [], []] grid [1] {
// CHECK-NEXT:     %a = cpu.buffer : !cpu.buffer<32x64xbf16>
// CHECK-NEXT:     %b = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
// CHECK-NEXT:     %out = cpu.buffer : !cpu.buffer<32x48xf32>
// CHECK-NEXT:     cpu.matmul %a, %b[%n], %out[%row, %col] size [32, 48] : !cpu.buffer<32x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<32x48xf32>
// CHECK-NEXT:     cpu.matmul added %a, %b[%n], %out[%row, %col] size [32, 16] depth %n, %live {k} : !cpu.buffer<32x64xbf16>, !cpu.panels<64x48xbf16, 16, 2>, !cpu.buffer<32x48xf32>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   cpu.func @whole_numbers(%n: index) shapes [[]] grid [1] {
// CHECK-NEXT:     %a = cpu.buffer : !cpu.buffer<16x20xi8>
// CHECK-NEXT:     %b = cpu.reserve %n : !cpu.panels<20x7xi8, 16, 4>
// CHECK-NEXT:     %out = cpu.buffer : !cpu.buffer<16x7xi32>
// CHECK-NEXT:     cpu.matmul added %a, %b[%n], %out[%n, %n] size [16, 16] : !cpu.buffer<16x20xi8>, !cpu.panels<20x7xi8, 16, 4>, !cpu.buffer<16x7xi32>
// CHECK-NEXT:     %u = cpu.buffer : !cpu.buffer<16x20xui8>
// CHECK-NEXT:     %v = cpu.reserve %n : !cpu.panels<20x7xui8, 16, 4>
// CHECK-NEXT:     %w = cpu.buffer : !cpu.buffer<16x7xui32>
// CHECK-NEXT:     cpu.matmul %u, %v[%n], %w[%n, %n] size [16, 16] : !cpu.buffer<16x20xui8>, !cpu.panels<20x7xui8, 16, 4>, !cpu.buffer<16x7xui32>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
