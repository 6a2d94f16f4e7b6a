// RUN: tessera opt %s | filecheck %s
// A kernel as each thread runs it: arguments, shapes and grid of the tile function it was made from.
cpu.func @nothing() shapes [] grid [] {
  cpu.return
}
cpu.func @"a name with spaces"(%x: !tile.view<0, f32, global>) shapes [[]] grid [1, 2, 3] {
  cpu.return
}
cpu.func @scalars(%n: index, %f: f32, %u: ui8, %b: i1, %y: !tile.view<2, bf16, global>) shapes [[], [], [], [], ["2*S + 1", 64]] grid ["S//64 + 1", "S*2 + 1"] {
  cpu.return
}
cpu.func @attributed(%y: !tile.view<1, f32, global>) shapes [[N]] grid ["(N + 127)//128"] attributes {origin = "examples"} {
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   cpu.func @nothing() shapes [] grid [] {
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   cpu.func @"a name with spaces"(%x: !tile.view<0, f32, global>) shapes [[]] grid [1, 2, 3] {
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   cpu.func @scalars(%n: index, %f: f32, %u: ui8, %b: i1, %y: !tile.view<2, bf16, global>) shapes [[], [], [], [], ["2*S + 1", 64]] grid ["S//64 + 1", "2*S + 1"] {
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   cpu.func @attributed(%y: !tile.view<1, f32, global>) shapes [[N]] grid ["(N + 127)//128"] attributes {origin = "examples"} {
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
