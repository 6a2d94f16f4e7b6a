// RUN: tessera opt %s | filecheck %s
// Slots for tiles of one type, outside of registers; CTAs of a cluster may share them.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  %one = pipe.ring : !pipe.ring<1, 8x16xbf16>
  %some = pipe.ring {k} : !pipe.ring<4, 64x128xf8E4M3FN>
  tile.return
}
tile.func @g() outputs 0 shapes [] grid [4] attributes {persistent, cluster = 2 : i64} {
  %ours = pipe.ring multicast : !pipe.ring<2, 8x16xbf16>
  %mine = pipe.ring multicast {k} : !pipe.ring<2, 8x16xbf16>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
// CHECK-NEXT:     %one = pipe.ring : !pipe.ring<1, 8x16xbf16>
// CHECK-NEXT:     %some = pipe.ring {k} : !pipe.ring<4, 64x128xf8E4M3FN>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   tile.func @g() outputs 0 shapes [] grid [4] attributes {persistent, cluster = 2 : i64} {
// CHECK-NEXT:     %ours = pipe.ring multicast : !pipe.ring<2, 8x16xbf16>
// CHECK-NEXT:     %mine = pipe.ring multicast {k} : !pipe.ring<2, 8x16xbf16>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
