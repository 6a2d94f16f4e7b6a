// RUN: tessera opt %s | filecheck %s
// One element as a scalar: a signed integer.
tile.func @f(%x: !tile.view<2, i64, global>, %y: !tile.view<0, i8, global>, %i: index) outputs 0 shapes [[M, "2*N + 1"], [], []] grid [1] {
  %a = tile.item %x[%i, %i] : !tile.view<2, i64, global> -> i64
  %b = tile.item %y[] {k} : !tile.view<0, i8, global> -> i8
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, i64, global>, %y: !tile.view<0, i8, global>, %i: index) outputs 0 shapes [[M, "2*N + 1"], [], []] grid [1] {
// CHECK-NEXT:     %a = tile.item %x[%i, %i] : !tile.view<2, i64, global> -> i64
// CHECK-NEXT:     %b = tile.item %y[] {k} : !tile.view<0, i8, global> -> i8
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
