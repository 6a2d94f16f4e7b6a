// RUN: tessera opt %s | filecheck %s
// How many programs there are along an axis of the grid.
nv.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid ["(N + 63)//64", 3] threads 128 {
  %a = nv.extent 0
  %b = nv.extent 1 {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid ["(N + 63)//64", 3] threads 128 {
// CHECK-NEXT:     %a = nv.extent 0
// CHECK-NEXT:     %b = nv.extent 1 {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
