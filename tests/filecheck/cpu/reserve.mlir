// RUN: tessera opt %s | filecheck %s
// Memory for packed matrices: their sizes, the width of a panel, and how many rows are interleaved if it is not one.
cpu.func @f(%n: index) shapes [[]] grid [1] {
  %a = cpu.reserve %n : !cpu.panels<64x48xf32, 48>
  %b = cpu.reserve %n {reused} : !cpu.panels<64x33xbf16, 16, 2>
  %c = cpu.reserve %n : !cpu.panels<0x1xi8, 16, 4>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%n: index) shapes [[]] grid [1] {
// CHECK-NEXT:     %a = cpu.reserve %n : !cpu.panels<64x48xf32, 48>
// CHECK-NEXT:     %b = cpu.reserve %n {reused} : !cpu.panels<64x33xbf16, 16, 2>
// CHECK-NEXT:     %c = cpu.reserve %n : !cpu.panels<0x1xi8, 16, 4>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
