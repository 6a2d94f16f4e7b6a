// RUN: tessera opt %s | filecheck %s
// The turn behind another.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
  %second = pipe.next %turn : !pipe.cursor<3>
  %third = pipe.next %second {k} : !pipe.cursor<3>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
// CHECK-NEXT:     %second = pipe.next %turn : !pipe.cursor<3>
// CHECK-NEXT:     %third = pipe.next %second {k} : !pipe.cursor<3>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
