// RUN: tessera opt %s | filecheck %s
// The first turn of a ring, here or in a role.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
  pipe.roles 2 copies {
    %other = pipe.cursor %ring {k} : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
// CHECK-NEXT:     pipe.roles 2 copies {
// CHECK-NEXT:       %other = pipe.cursor %ring {k} : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
// CHECK-NEXT:     } computes {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
