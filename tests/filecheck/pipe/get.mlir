// RUN: tessera opt %s | filecheck %s
// The tile in a slot.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  %a = pipe.get %ring[%i] : !pipe.ring<3, 8x16xbf16> -> tensor<8x16xbf16>
  %b = pipe.get %ring[%j] {k} : !pipe.ring<3, 8x16xbf16> -> tensor<8x16xbf16>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     %a = pipe.get %ring[%i] : !pipe.ring<3, 8x16xbf16> -> tensor<8x16xbf16>
// CHECK-NEXT:     %b = pipe.get %ring[%j] {k} : !pipe.ring<3, 8x16xbf16> -> tensor<8x16xbf16>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
