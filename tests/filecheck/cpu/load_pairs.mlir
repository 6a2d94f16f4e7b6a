// RUN: tessera opt %s | filecheck %s
// Bytes of halves in a buffer, from a place of the tile that they make on.
cpu.func @f(%i: index) shapes [[]] grid [1] {
  %b = cpu.buffer : !cpu.buffer<8x40xi4>
  %two = cpu.load_pairs %b[%i, %i] of [8, 40] along 0 : !cpu.buffer<8x40xi4> -> tensor<4x16xui8>
  %one = cpu.load_pairs %b[%i] of [40] along 0 {k} : !cpu.buffer<8x40xi4> -> tensor<16xui8>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%i: index) shapes [[]] grid [1] {
// CHECK-NEXT:     %b = cpu.buffer : !cpu.buffer<8x40xi4>
// CHECK-NEXT:     %two = cpu.load_pairs %b[%i, %i] of [8, 40] along 0 : !cpu.buffer<8x40xi4> -> tensor<4x16xui8>
// CHECK-NEXT:     %one = cpu.load_pairs %b[%i] of [40] along 0 {k} : !cpu.buffer<8x40xi4> -> tensor<16xui8>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
