// RUN: tessera opt %s | filecheck %s
// Views and scalars go in; `shapes` names the sizes, the grid is an expression in those names. Inputs may be there to be filled.
tile.func @nothing() outputs 0 shapes [] grid [] {
  tile.return
}
tile.func @"a name with spaces"(%x: !tile.view<0, f32, global>) outputs 1 shapes [[]] grid [1, 2, 3] {
  tile.return
}
tile.func @dtypes(%a: !tile.view<1, bf16, global>, %b: !tile.view<1, f8E4M3FN, shared>, %c: !tile.view<1, i4, register>, %d: !tile.view<1, ui8, global>, %e: !tile.view<1, i1, global>) outputs 2 shapes [[A], [B], [A], [A], [0]] grid [A] {
  tile.return
}
tile.func @scalars(%n: index, %f: f32, %u: ui8, %b: i1, %y: !tile.view<2, f32, global>) outputs 1 shapes [[], [], [], [], ["2*S + 1", 64]] grid ["S//64 + 1", "S*2 + 1"] {
  tile.return
}
tile.func @filled(%x: !tile.view<1, f32, global>, %n: index, %y: !tile.view<1, f32, global>, %z: !tile.view<0, f32, global>, %r: !tile.view<1, f32, global>) outputs 1 fills [2, 3] shapes [[N], [], [N], [], [N]] grid [1] {
  tile.return
}
tile.func @all(%y: !tile.view<1, f32, global>) outputs 0 fills [0] shapes [[N]] grid [1] attributes {origin = "examples"} {
  tile.return
}
tile.func @attributed(%y: !tile.view<1, f32, global>) outputs 1 shapes [[N]] grid ["(N + 127)//128"] attributes {origin = "examples"} {
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   tile.func @nothing() outputs 0 shapes [] grid [] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @"a name with spaces"(%x: !tile.view<0, f32, global>) outputs 1 shapes [[]] grid [1, 2, 3] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @dtypes(%a: !tile.view<1, bf16, global>, %b: !tile.view<1, f8E4M3FN, shared>, %c: !tile.view<1, i4, register>, %d: !tile.view<1, ui8, global>, %e: !tile.view<1, i1, global>) outputs 2 shapes [[A], [B], [A], [A], [0]] grid [A] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @scalars(%n: index, %f: f32, %u: ui8, %b: i1, %y: !tile.view<2, f32, global>) outputs 1 shapes [[], [], [], [], ["2*S + 1", 64]] grid ["S//64 + 1", "2*S + 1"] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @filled(%x: !tile.view<1, f32, global>, %n: index, %y: !tile.view<1, f32, global>, %z: !tile.view<0, f32, global>, %r: !tile.view<1, f32, global>) outputs 1 fills [2, 3] shapes [[N], [], [N], [], [N]] grid [1] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @all(%y: !tile.view<1, f32, global>) outputs 0 fills [0] shapes [[N]] grid [1] attributes {origin = "examples"} {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @attributed(%y: !tile.view<1, f32, global>) outputs 1 shapes [[N]] grid ["(N + 127)//128"] attributes {origin = "examples"} {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
