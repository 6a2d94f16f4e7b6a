// RUN: tessera opt %s | filecheck %s
// One element as a scalar; without a sign it becomes an index.
tile.func @f(%x: !tile.view<2, i64, global>, %y: !tile.view<0, i8, global>, %u: !tile.view<1, ui8, global>, %h: !tile.view<1, bf16, global>, %b: !tile.view<1, i1, global>, %i: index) outputs 0 shapes [[M, "2*N + 1"], [], [N], [N], [N], []] grid [1] {
  %a = tile.item %x[%i, %i] : !tile.view<2, i64, global> -> i64
  %c = tile.item %y[] {k} : !tile.view<0, i8, global> -> i8
  %d = tile.item %u[%i] : !tile.view<1, ui8, global> -> index
  %e = tile.item %h[%d] : !tile.view<1, bf16, global> -> bf16
  %f = tile.item %b[%i] : !tile.view<1, i1, global> -> i1
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, i64, global>, %y: !tile.view<0, i8, global>, %u: !tile.view<1, ui8, global>, %h: !tile.view<1, bf16, global>, %b: !tile.view<1, i1, global>, %i: index) outputs 0 shapes [[M, "2*N + 1"], [], [N], [N], [N], []] grid [1] {
// CHECK-NEXT:     %a = tile.item %x[%i, %i] : !tile.view<2, i64, global> -> i64
// CHECK-NEXT:     %c = tile.item %y[] {k} : !tile.view<0, i8, global> -> i8
// CHECK-NEXT:     %d = tile.item %u[%i] : !tile.view<1, ui8, global> -> index
// CHECK-NEXT:     %e = tile.item %h[%d] : !tile.view<1, bf16, global> -> bf16
// CHECK-NEXT:     %f = tile.item %b[%i] : !tile.view<1, i1, global> -> i1
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
