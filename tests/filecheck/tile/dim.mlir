// RUN: tessera opt %s | filecheck %s
// The size along an axis, of an argument or of a view made inside.
tile.func @f(%x: !tile.view<2, bf16, global>, %y: !tile.view<1, ui8, shared>) outputs 0 shapes [[M, "2*N + 1"], [0]] grid [1] {
  %a = tile.dim %x, 0 : !tile.view<2, bf16, global>
  %b = tile.dim %x, 1 {k} : !tile.view<2, bf16, global>
  %c = tile.dim %y, 0 : !tile.view<1, ui8, shared>
  %v = tile.view %y offset %a sizes [%b] strides [%c] : !tile.view<1, ui8, shared> -> !tile.view<1, ui8, shared>
  %d = tile.dim %v, 0 : !tile.view<1, ui8, shared>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %y: !tile.view<1, ui8, shared>) outputs 0 shapes [[M, "2*N + 1"], [0]] grid [1] {
// CHECK-NEXT:     %a = tile.dim %x, 0 : !tile.view<2, bf16, global>
// CHECK-NEXT:     %b = tile.dim %x, 1 {k} : !tile.view<2, bf16, global>
// CHECK-NEXT:     %c = tile.dim %y, 0 : !tile.view<1, ui8, shared>
// CHECK-NEXT:     %v = tile.view %y offset %a sizes[%b] strides[%c] : !tile.view<1, ui8, shared> -> !tile.view<1, ui8, shared>
// CHECK-NEXT:     %d = tile.dim %v, 0 : !tile.view<1, ui8, shared>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
