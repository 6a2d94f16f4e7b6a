// RUN: tessera opt %s | filecheck %s
// How many programs there are along each axis.
cpu.func @f(%x: !tile.view<2, f32, global>) shapes [[M, N]] grid ["(M + 63)//64", N] {
  %rows = cpu.grid 0
  %cols = cpu.grid 1 {slow}
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>) shapes [[M, N]] grid ["(M + 63)//64", N] {
// CHECK-NEXT:     %rows = cpu.grid 0
// CHECK-NEXT:     %cols = cpu.grid 1 {slow}
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
