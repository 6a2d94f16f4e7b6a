// RUN: tessera opt %s | filecheck %s
cpu.func @f(%x: !tile.view<2, f32, global>, %w: !tile.view<2, bf16, global>, %i: index, %n: index) shapes [[K, N], [N, K], [], []] grid [1] {
  %p = cpu.reserve %n : !cpu.panels<64x48xf32, 16>
  cpu.pack %x[%i, %i], %p[%n] : !tile.view<2, f32, global>, !cpu.panels<64x48xf32, 16>
  cpu.pack transposed %w[%i, %i], %p[%n] {k} : !tile.view<2, bf16, global>, !cpu.panels<64x48xf32, 16>
  %q = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
  cpu.pack transposed %w[%n, %i], %q[%i] : !tile.view<2, bf16, global>, !cpu.panels<64x48xbf16, 16, 2>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>, %w: !tile.view<2, bf16, global>, %i: index, %n: index) shapes [[K, N], [N, K], [], []] grid [1] {
// CHECK-NEXT:     %p = cpu.reserve %n : !cpu.panels<64x48xf32, 16>
// CHECK-NEXT:     cpu.pack %x[%i, %i], %p[%n] : !tile.view<2, f32, global>, !cpu.panels<64x48xf32, 16>
// CHECK-NEXT:     cpu.pack transposed %w[%i, %i], %p[%n] {k} : !tile.view<2, bf16, global>, !cpu.panels<64x48xf32, 16>
// CHECK-NEXT:     %q = cpu.reserve %n : !cpu.panels<64x48xbf16, 16, 2>
// CHECK-NEXT:     cpu.pack transposed %w[%n, %i], %q[%i] : !tile.view<2, bf16, global>, !cpu.panels<64x48xbf16, 16, 2>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
