// RUN: tessera opt %s | filecheck %s
// A tile of one ring, transposed into another one, turn by turn.
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
  %turned = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  pipe.roles 2 copies {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    pipe.fill %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.cursor<2>
  } turns {
    %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
    pipe.turn %ring, %turned[%c] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
    %d = pipe.next %c : !pipe.cursor<2>
    pipe.turn %ring, %turned[%d] {k} : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
  } computes {
    %t = pipe.cursor %turned : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.cursor<2>
    %tile = pipe.take %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2> -> tensor<16x8xf8E4M3FN>
    pipe.release %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<2, 8x16xf8E4M3FN>
// CHECK-NEXT:     %turned = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
// CHECK-NEXT:     pipe.roles 2 copies {
// CHECK-NEXT:       %c = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
// CHECK-NEXT:       pipe.fill %x[%i, %i], %ring[%c] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.cursor<2>
// CHECK-NEXT:     } turns {
// CHECK-NEXT:       %c_1 = pipe.cursor %ring : !pipe.ring<2, 8x16xf8E4M3FN> -> !pipe.cursor<2>
// CHECK-NEXT:       pipe.turn %ring, %turned[%c_1] : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
// CHECK-NEXT:       %d = pipe.next %c_1 : !pipe.cursor<2>
// CHECK-NEXT:       pipe.turn %ring, %turned[%d] {k} : !pipe.ring<2, 8x16xf8E4M3FN>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
// CHECK-NEXT:     } computes {
// CHECK-NEXT:       %t = pipe.cursor %turned : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.cursor<2>
// CHECK-NEXT:       %tile = pipe.take %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2> -> tensor<16x8xf8E4M3FN>
// CHECK-NEXT:       pipe.release %turned[%t] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
