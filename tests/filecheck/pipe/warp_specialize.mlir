// RUN: tessera opt %s | filecheck %s
// Who copies, and who computes.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 {k} producer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
// CHECK-NEXT:     pipe.warp_specialize 2 {k} producer {
// CHECK-NEXT:       %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %state_1 = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
