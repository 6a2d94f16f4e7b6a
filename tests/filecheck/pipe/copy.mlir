// RUN: tessera opt %s | filecheck %s
// A copy of a part of a view into a slot; it goes on by itself.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.copy %x[%i, %j], %ring[%i] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>
  pipe.copy %x[%j, %j], %ring[%j] {k} : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     pipe.copy %x[%i, %j], %ring[%i] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     pipe.copy %x[%j, %j], %ring[%j] {k} : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
