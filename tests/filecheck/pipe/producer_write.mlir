// RUN: tessera opt %s | filecheck %s
// An operand that is computed of a tile of one ring, put into another.
tile.func @f(%x: !tile.view<2, i8, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %packed = pipe.ring : !pipe.ring<3, 32x32xi8>
  %ring = pipe.ring : !pipe.ring<2, 32x32xbf16>
  pipe.warp_specialize 2 producer {
    %c = pipe.pipeline_state %packed : !pipe.ring<3, 32x32xi8> -> !pipe.pipeline_state<3>
    pipe.producer_copy %x[%i, %i], %packed[%c] : !tile.view<2, i8, global>, !pipe.ring<3, 32x32xi8>, !pipe.pipeline_state<3>
  } preparer {
    %c = pipe.pipeline_state %packed : !pipe.ring<3, 32x32xi8> -> !pipe.pipeline_state<3>
    %p = pipe.pipeline_state %ring : !pipe.ring<2, 32x32xbf16> -> !pipe.pipeline_state<2>
    %narrow = pipe.consumer_wait %packed[%c] : !pipe.ring<3, 32x32xi8>, !pipe.pipeline_state<3> -> tensor<32x32xi8>
    %wide = tile.ew<cast> %narrow : tensor<32x32xi8> -> tensor<32x32xbf16>
    pipe.producer_write %wide, %ring[%p] : tensor<32x32xbf16>, !pipe.ring<2, 32x32xbf16>, !pipe.pipeline_state<2>
    pipe.consumer_release %packed[%c] : !pipe.ring<3, 32x32xi8>, !pipe.pipeline_state<3>
    %q = pipe.advance %p : !pipe.pipeline_state<2>
    pipe.producer_write %wide, %ring[%q] {k} : tensor<32x32xbf16>, !pipe.ring<2, 32x32xbf16>, !pipe.pipeline_state<2>
  } consumer {
    %p = pipe.pipeline_state %ring : !pipe.ring<2, 32x32xbf16> -> !pipe.pipeline_state<2>
    %tile = pipe.consumer_wait %ring[%p] : !pipe.ring<2, 32x32xbf16>, !pipe.pipeline_state<2> -> tensor<32x32xbf16>
    pipe.consumer_release %ring[%p] : !pipe.ring<2, 32x32xbf16>, !pipe.pipeline_state<2>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, i8, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %packed = pipe.ring : !pipe.ring<3, 32x32xi8>
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<2, 32x32xbf16>
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %c = pipe.pipeline_state %packed : !pipe.ring<3, 32x32xi8> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       pipe.producer_copy %x[%i, %i], %packed[%c] : !tile.view<2, i8, global>, !pipe.ring<3, 32x32xi8>, !pipe.pipeline_state<3>
// CHECK-NEXT:     } preparer {
// CHECK-NEXT:       %c_1 = pipe.pipeline_state %packed : !pipe.ring<3, 32x32xi8> -> !pipe.pipeline_state<3>
// CHECK-NEXT:       %p = pipe.pipeline_state %ring : !pipe.ring<2, 32x32xbf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %narrow = pipe.consumer_wait %packed[%c_1] : !pipe.ring<3, 32x32xi8>, !pipe.pipeline_state<3> -> tensor<32x32xi8>
// CHECK-NEXT:       %wide = tile.ew<cast> %narrow : tensor<32x32xi8> -> tensor<32x32xbf16>
// CHECK-NEXT:       pipe.producer_write %wide, %ring[%p] : tensor<32x32xbf16>, !pipe.ring<2, 32x32xbf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:       pipe.consumer_release %packed[%c_1] : !pipe.ring<3, 32x32xi8>, !pipe.pipeline_state<3>
// CHECK-NEXT:       %q = pipe.advance %p : !pipe.pipeline_state<2>
// CHECK-NEXT:       pipe.producer_write %wide, %ring[%q] {k} : tensor<32x32xbf16>, !pipe.ring<2, 32x32xbf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %p_1 = pipe.pipeline_state %ring : !pipe.ring<2, 32x32xbf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %tile = pipe.consumer_wait %ring[%p_1] : !pipe.ring<2, 32x32xbf16>, !pipe.pipeline_state<2> -> tensor<32x32xbf16>
// CHECK-NEXT:       pipe.consumer_release %ring[%p_1] : !pipe.ring<2, 32x32xbf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
