// RUN: tessera opt %s | filecheck %s
// The distance between neighbours along an axis, in elements.
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %y: !tile.view<1, i1, register>) outputs 0 shapes [[M, "2*N + 1"], [N]] grid [1] {
  %a = tile.stride %x, 0 : !tile.view<2, f8E4M3FN, global>
  %b = tile.stride %x, 1 {k} : !tile.view<2, f8E4M3FN, global>
  %c = tile.stride %y, 0 : !tile.view<1, i1, register>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %y: !tile.view<1, i1, register>) outputs 0 shapes [[M, "2*N + 1"], [N]] grid [1] {
// CHECK-NEXT:     %a = tile.stride %x, 0 : !tile.view<2, f8E4M3FN, global>
// CHECK-NEXT:     %b = tile.stride %x, 1 {k} : !tile.view<2, f8E4M3FN, global>
// CHECK-NEXT:     %c = tile.stride %y, 0 : !tile.view<1, i1, register>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
