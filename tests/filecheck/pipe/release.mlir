// RUN: tessera opt %s | filecheck %s
// What was taken is used up.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    pipe.release %ring[%turn] : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
    %second = pipe.next %turn : !pipe.cursor<3>
    pipe.release %ring[%second] {k} : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     pipe.roles 2 copies {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } computes {
// CHECK-NEXT:       %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
// CHECK-NEXT:       pipe.release %ring[%turn] : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
// CHECK-NEXT:       %second = pipe.next %turn : !pipe.cursor<3>
// CHECK-NEXT:       pipe.release %ring[%second] {k} : !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
