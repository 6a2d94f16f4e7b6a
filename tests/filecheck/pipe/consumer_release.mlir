// RUN: tessera opt %s | filecheck %s
// What was taken is used up.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    pipe.consumer_release %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
    %second = pipe.advance %state : !pipe.pipeline_state<3>
    pipe.consumer_release %ring[%second] {k} : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
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
// CHECK-NEXT:       pipe.consumer_release %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:       %second = pipe.advance %state : !pipe.pipeline_state<3>
// CHECK-NEXT:       pipe.consumer_release %ring[%second] {k} : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
