// RUN: tessera opt %s | filecheck %s
// Pairs of an outer and an inner index; what `once` yields for an outer index, all its bodies see.
cpu.func @f(%x: !tile.view<2, f32, global>) shapes [[M, N]] grid [M, N] {
  %rows = cpu.grid 0
  %cols = cpu.grid 1
  cpu.parallel %rows, %cols once {
  ^bb0(%outer: index):
    cpu.yield
  } do {
  ^bb0(%outer: index, %inner: index):
    %sum = arith.addi %outer, %inner : index
    cpu.yield
  }
  cpu.return
}
cpu.func @shared(%w: !tile.view<2, f32, global>) shapes [[K, N]] grid ["N//16", 8] {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %outer = cpu.grid 0
  %inner = cpu.grid 1
  cpu.parallel %outer, %inner attributes {note = "packs"} once {
  ^bb0(%o: index):
    %panels = cpu.reserve %two : !cpu.panels<8x16xf32, 16>
    %kept = cpu.buffer : !cpu.buffer<1x4xf32>
    cpu.pack %w[%zero, %o], %panels[%zero] : !tile.view<2, f32, global>, !cpu.panels<8x16xf32, 16>
    cpu.yield %panels, %kept, %o : !cpu.panels<8x16xf32, 16>, !cpu.buffer<1x4xf32>, index
  } do {
  ^bb0(%o: index, %i: index, %p: !cpu.panels<8x16xf32, 16>, %b: !cpu.buffer<1x4xf32>, %number: index):
    cpu.yield
  }
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%x: !tile.view<2, f32, global>) shapes [[M, N]] grid [M, N] {
// CHECK-NEXT:     %rows = cpu.grid 0
// CHECK-NEXT:     %cols = cpu.grid 1
// CHECK-NEXT:     cpu.parallel %rows, %cols once {
// CHECK-NEXT:     ^bb0(%outer: index):
// CHECK-NEXT:       cpu.yield
// CHECK-NEXT:     } do {
// CHECK-NEXT:     ^bb0(%outer_1: index, %inner: index):
// CHECK-NEXT:       %sum = arith.addi %outer_1, %inner : index
// CHECK-NEXT:       cpu.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   cpu.func @shared(%w: !tile.view<2, f32, global>) shapes [[K, N]] grid ["N//16", 8] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %two = arith.constant 2 : index
// CHECK-NEXT:     %outer = cpu.grid 0
// CHECK-NEXT:     %inner = cpu.grid 1
// CHECK-NEXT:     cpu.parallel %outer, %inner attributes {note = "packs"} once {
// CHECK-NEXT:     ^bb0(%o: index):
// CHECK-NEXT:       %panels = cpu.reserve %two : !cpu.panels<8x16xf32, 16>
// CHECK-NEXT:       %kept = cpu.buffer : !cpu.buffer<1x4xf32>
// CHECK-NEXT:       cpu.pack %w[%zero, %o], %panels[%zero] : !tile.view<2, f32, global>, !cpu.panels<8x16xf32, 16>
// CHECK-NEXT:       cpu.yield %panels, %kept, %o : !cpu.panels<8x16xf32, 16>, !cpu.buffer<1x4xf32>, index
// CHECK-NEXT:     } do {
// CHECK-NEXT:     ^bb0(%o_1: index, %i: index, %p: !cpu.panels<8x16xf32, 16>, %b: !cpu.buffer<1x4xf32>, %number: index):
// CHECK-NEXT:       cpu.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
