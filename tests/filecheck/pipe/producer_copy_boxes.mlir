// RUN: tessera opt %s | filecheck %s
// Copies of boxes into a slot, one behind the other; zeros from an end on.
tile.func @f(%x: !tile.view<3, bf16, global>, %i: index) outputs 0 shapes [[K, M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 16x16xbf16>
  pipe.warp_specialize 2 producer {
    %zero = arith.constant 0 : index
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 16x16xbf16> -> !pipe.pipeline_state<3>
    pipe.producer_copy_boxes %x[%i, %zero, %zero, %zero, %i, %zero] along [1, 2], %ring[%state] : !tile.view<3, bf16, global>, !pipe.ring<3, 16x16xbf16>, !pipe.pipeline_state<3>
    %second = pipe.advance %state : !pipe.pipeline_state<3>
    pipe.producer_copy_boxes %x[%i, %zero, %zero, %zero, %i, %zero] along [1, 2] until %i, %ring[%second] {k} : !tile.view<3, bf16, global>, !pipe.ring<3, 16x16xbf16>, !pipe.pipeline_state<3>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<3, bf16, global>, %i: index) outputs 0 shapes [[K, M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 16x16xbf16>
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %zero = arith.constant 0 : index
// CHECK-NEXT:       %state = pipe.pipeline_state %ring : !pipe.ring<3, 16x16xbf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       pipe.producer_copy_boxes %x[%i, %zero, %zero, %zero, %i, %zero] along [1, 2], %ring[%state] : !tile.view<3, bf16, global>, !pipe.ring<3, 16x16xbf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:       %second = pipe.advance %state : !pipe.pipeline_state<3>
// CHECK-NEXT:       pipe.producer_copy_boxes %x[%i, %zero, %zero, %zero, %i, %zero] along [1, 2] until %i, %ring[%second] {k} : !tile.view<3, bf16, global>, !pipe.ring<3, 16x16xbf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
