// RUN: tessera opt %s | filecheck %s
// A copy of a part of a view into the slot of a turn.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.roles 2 copies {
    %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
    pipe.fill %x[%i, %i], %ring[%turn] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
    %second = pipe.next %turn : !pipe.cursor<3>
    pipe.fill %x[%i, %i], %ring[%second] {k} : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     pipe.roles 2 copies {
// CHECK-NEXT:       %turn = pipe.cursor %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.cursor<3>
// CHECK-NEXT:       pipe.fill %x[%i, %i], %ring[%turn] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
// CHECK-NEXT:       %second = pipe.next %turn : !pipe.cursor<3>
// CHECK-NEXT:       pipe.fill %x[%i, %i], %ring[%second] {k} : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.cursor<3>
// CHECK-NEXT:     } computes {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
