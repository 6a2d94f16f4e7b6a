// RUN: tessera opt %s | filecheck %s
// Rows of an array where they are: side by side, and only read. Where they overlap what is written, they are copied.
cpu.func @f(%x: !tile.view<2, f32, global>, %w: !tile.view<2, bf16, global>, %i: index) shapes [[M, 64], [N, 32], []] grid [1] {
  %a = cpu.borrow %x[%i, %i] : !tile.view<2, f32, global> -> !cpu.buffer<8x64xf32, dense>
  %b = cpu.borrow %w[%i, %i] {k} : !tile.view<2, bf16, global> -> !cpu.buffer<16x32xbf16, dense>
  %c = cpu.load %a[%i, %i] : !cpu.buffer<8x64xf32, dense> -> tensor<2x16xf32>
  %d = cpu.borrow %x[%i, %i] written %w, %x : !tile.view<2, bf16, global>, !tile.view<2, f32, global> : !tile.view<2, f32, global> -> !cpu.buffer<8x64xf32, dense>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>, %w: !tile.view<2, bf16, global>, %i: index) shapes [[M, 64], [N, 32], []] grid [1] {
// CHECK-NEXT:     %a = cpu.borrow %x[%i, %i] : !tile.view<2, f32, global> -> !cpu.buffer<8x64xf32, dense>
// CHECK-NEXT:     %b = cpu.borrow %w[%i, %i] {k} : !tile.view<2, bf16, global> -> !cpu.buffer<16x32xbf16, dense>
// CHECK-NEXT:     %c = cpu.load %a[%i, %i] : !cpu.buffer<8x64xf32, dense> -> tensor<2x16xf32>
// CHECK-NEXT:     %d = cpu.borrow %x[%i, %i] written %w, %x : !tile.view<2, bf16, global>, !tile.view<2, f32, global> : !tile.view<2, f32, global> -> !cpu.buffer<8x64xf32, dense>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
