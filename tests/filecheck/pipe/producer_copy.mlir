// RUN: tessera opt %s | filecheck %s
// A copy of a part of a view into a slot.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    pipe.producer_copy %x[%i, %i], %ring[%state] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
    %second = pipe.advance %state : !pipe.pipeline_state<3>
    pipe.producer_copy %x[%i, %i], %ring[%second] {k} : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       pipe.producer_copy %x[%i, %i], %ring[%state] : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:       %second = pipe.advance %state : !pipe.pipeline_state<3>
// CHECK-NEXT:       pipe.producer_copy %x[%i, %i], %ring[%second] {k} : !tile.view<2, bf16, global>, !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
