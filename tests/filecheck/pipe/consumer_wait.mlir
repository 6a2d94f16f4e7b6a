// RUN: tessera opt %s | filecheck %s
// The tile of a slot, or the rows or columns of one consumer.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    %all = pipe.consumer_wait %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<8x16xbf16>
    %second = pipe.advance %state : !pipe.pipeline_state<3>
    %mine = pipe.consumer_wait part %ring[%second] {k} : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<4x16xbf16>
    %third = pipe.advance %second : !pipe.pipeline_state<3>
    %beside = pipe.consumer_wait part columns %ring[%third] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<8x8xbf16>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       %all = pipe.consumer_wait %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<8x16xbf16>
// CHECK-NEXT:       %second = pipe.advance %state : !pipe.pipeline_state<3>
// CHECK-NEXT:       %mine = pipe.consumer_wait part %ring[%second] {k} : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<4x16xbf16>
// CHECK-NEXT:       %third = pipe.advance %second : !pipe.pipeline_state<3>
// CHECK-NEXT:       %beside = pipe.consumer_wait part columns %ring[%third] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<8x8xbf16>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
