// RUN: tessera opt %s | filecheck %s
// The halves of bytes in a buffer, from a place of the tile that they make on.
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xui8>
  %two = cpu.load_halves %b[%i, %i] of [8, 40] along 0 : !cpu.buffer<8x40xui8> -> tensor<4x16xi4>
  %one = cpu.load_halves %b[%i] of [40] along 0 {k} : !cpu.buffer<8x40xui8> -> tensor<16xi4>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%i: index) shapes [[]] grid [1] {
// CHECK-NEXT:     %b = cpu.buffer : !cpu.buffer<8x40xui8>
// CHECK-NEXT:     %two = cpu.load_halves %b[%i, %i] of [8, 40] along 0 : !cpu.buffer<8x40xui8> -> tensor<4x16xi4>
// CHECK-NEXT:     %one = cpu.load_halves %b[%i] of [40] along 0 {k} : !cpu.buffer<8x40xui8> -> tensor<16xi4>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
