// RUN: tessera opt %s | filecheck %s
// One coordinate per axis of the grid.
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [N, 4, "(N + 15)//16"] {
  %a = tile.program_id 0
  %b = tile.program_id 1
  %c = tile.program_id 2 {k}
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [N, 4, "(N + 15)//16"] {
// CHECK-NEXT:     %a = tile.program_id 0
// CHECK-NEXT:     %b = tile.program_id 1
// CHECK-NEXT:     %c = tile.program_id 2 {k}
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
