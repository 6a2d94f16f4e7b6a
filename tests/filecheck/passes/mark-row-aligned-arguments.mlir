// RUN: tessera opt %s -p mark-row-aligned{arguments=2,0} | filecheck %s
// The function says which arguments have rows of whole pieces of 16 bytes.
nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [M, N], [M, N]] grid [1] threads 32 {
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [M, N], [M, N]] grid [1] threads 32 attributes {row_aligned = array<i64: 0, 2>} {
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
