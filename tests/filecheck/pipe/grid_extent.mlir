// RUN: tessera opt %s | filecheck %s
// The sizes of the grid, whoever runs the function.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %columns = pipe.grid_extent 0
  %rows = pipe.grid_extent 1 {k}
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %columns = pipe.grid_extent 0
// CHECK-NEXT:     %rows = pipe.grid_extent 1 {k}
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
