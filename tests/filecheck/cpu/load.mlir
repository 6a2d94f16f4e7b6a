// RUN: tessera opt %s | filecheck %s
// Tiles of one axis or one column lie along a row of the buffer, unless it is a column of the buffer that is meant.
cpu.func @f(%r: index, %c: index) shapes [[], []] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xf32>
  %tile = cpu.load %b[%r, %c] : !cpu.buffer<8x40xf32> -> tensor<4x16xf32>
  %row = cpu.load %b[%r, %c] : !cpu.buffer<8x40xf32> -> tensor<16xf32>
  %values = cpu.load %b[%r, %c] {k} : !cpu.buffer<8x40xf32> -> tensor<8x1xf32>
  %column = cpu.load column %b[%r, %c] : !cpu.buffer<8x40xf32> -> tensor<8x1xf32>
  %one = cpu.load %b[%r, %c] : !cpu.buffer<8x40xf32> -> tensor<f32>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%r: index, %c: index) shapes [[], []] grid [1] {
// CHECK-NEXT:     %b = cpu.buffer : !cpu.buffer<8x40xf32>
// CHECK-NEXT:     %tile = cpu.load %b[%r, %c] : !cpu.buffer<8x40xf32> -> tensor<4x16xf32>
// CHECK-NEXT:     %row = cpu.load %b[%r, %c] : !cpu.buffer<8x40xf32> -> tensor<16xf32>
// CHECK-NEXT:     %values = cpu.load %b[%r, %c] {k} : !cpu.buffer<8x40xf32> -> tensor<8x1xf32>
// CHECK-NEXT:     %column = cpu.load column %b[%r, %c] : !cpu.buffer<8x40xf32> -> tensor<8x1xf32>
// CHECK-NEXT:     %one = cpu.load %b[%r, %c] : !cpu.buffer<8x40xf32> -> tensor<f32>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
