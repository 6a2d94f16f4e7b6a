// RUN: tessera opt %s | filecheck %s
// Tiles of one axis or one column go along a row of the buffer.
cpu.func @f(%r: index, %c: index, %x: f32) shapes [[], [], []] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xf32>
  %tile = tile.full %x : tensor<4x16xf32>
  %row = tile.full %x : tensor<16xf32>
  %column = tile.full %x : tensor<8x1xf32>
  %one = tile.full %x : tensor<f32>
  cpu.store %tile, %b[%r, %c] : tensor<4x16xf32>, !cpu.buffer<8x40xf32>
  cpu.store %row, %b[%r, %c] {k} : tensor<16xf32>, !cpu.buffer<8x40xf32>
  cpu.store %column, %b[%r, %c] : tensor<8x1xf32>, !cpu.buffer<8x40xf32>
  cpu.store %one, %b[%r, %c] : tensor<f32>, !cpu.buffer<8x40xf32>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%r: index, %c: index, %x: f32) shapes [[], [], []] grid [1] {
// CHECK-NEXT:     %b = cpu.buffer : !cpu.buffer<8x40xf32>
// CHECK-NEXT:     %tile = tile.full %x : tensor<4x16xf32>
// CHECK-NEXT:     %row = tile.full %x : tensor<16xf32>
// CHECK-NEXT:     %column = tile.full %x : tensor<8x1xf32>
// CHECK-NEXT:     %one = tile.full %x : tensor<f32>
// CHECK-NEXT:     cpu.store %tile, %b[%r, %c] : tensor<4x16xf32>, !cpu.buffer<8x40xf32>
// CHECK-NEXT:     cpu.store %row, %b[%r, %c] {k} : tensor<16xf32>, !cpu.buffer<8x40xf32>
// CHECK-NEXT:     cpu.store %column, %b[%r, %c] : tensor<8x1xf32>, !cpu.buffer<8x40xf32>
// CHECK-NEXT:     cpu.store %one, %b[%r, %c] : tensor<f32>, !cpu.buffer<8x40xf32>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
