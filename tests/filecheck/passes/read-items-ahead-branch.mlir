// RUN: tessera opt %s -p "read-items-ahead" | filecheck %s
// The number of the first page is read before it is known whether there is one; what follows the first copy stays.
tile.func @f(%x: !tile.view<3, bf16, global>, %table: !tile.view<1, i32, global>, %lengths: !tile.view<1, i32, global>) outputs 0 shapes [[N, 8, 16], [M], [B]] grid [1] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xbf16>
  pipe.warp_specialize 1 producer {
    %zero = arith.constant 0 : index
    %state = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xbf16> -> !pipe.pipeline_state<2>
    %length = tile.item %lengths[%zero] : !tile.view<1, i32, global> -> i32
    %none = arith.constant 0 : i32
    %some = arith.cmpi sgt, %length, %none : i32
    scf.if %some {
      %place = arith.addi %zero, %zero : index
      %number = tile.item %table[%place] : !tile.view<1, i32, global> -> i32
      %page = arith.index_cast %number : i32 to index
      pipe.producer_copy_boxes %x[%page, %zero, %zero] along [1, 2], %ring[%state] : !tile.view<3, bf16, global>, !pipe.ring<2, 8x16xbf16>, !pipe.pipeline_state<2>
      %after = tile.item %table[%zero] : !tile.view<1, i32, global> -> i32
      %next = arith.index_cast %after : i32 to index
      %second = pipe.advance %state : !pipe.pipeline_state<2>
      pipe.producer_copy_boxes %x[%next, %zero, %zero] along [1, 2], %ring[%second] : !tile.view<3, bf16, global>, !pipe.ring<2, 8x16xbf16>, !pipe.pipeline_state<2>
    }
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<3, bf16, global>, %table: !tile.view<1, i32, global>, %lengths: !tile.view<1, i32, global>) outputs 0 shapes [[N, 8, 16], [M], [B]] grid [1] {
// CHECK-NEXT:     %ring = pipe.ring : !pipe.ring<2, 8x16xbf16>
// CHECK-NEXT:     pipe.warp_specialize 1 producer {
// CHECK-NEXT:       %zero = arith.constant 0 : index
// CHECK-NEXT:       %state = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xbf16> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %length = tile.item %lengths[%zero] : !tile.view<1, i32, global> -> i32
// CHECK-NEXT:       %none = arith.constant 0 : i32
// CHECK-NEXT:       %some = arith.cmpi sgt, %length, %none : i32
// CHECK-NEXT:       %place = arith.addi %zero, %zero : index
// CHECK-NEXT:       %number = tile.item %table[%place] : !tile.view<1, i32, global> -> i32
// CHECK-NEXT:       scf.if %some {
// CHECK-NEXT:         %page = arith.index_cast %number : i32 to index
// CHECK-NEXT:         pipe.producer_copy_boxes %x[%page, %zero, %zero] along [1, 2], %ring[%state] : !tile.view<3, bf16, global>, !pipe.ring<2, 8x16xbf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:         %after = tile.item %table[%zero] : !tile.view<1, i32, global> -> i32
// CHECK-NEXT:         %next = arith.index_cast %after : i32 to index
// CHECK-NEXT:         %second = pipe.advance %state : !pipe.pipeline_state<2>
// CHECK-NEXT:         pipe.producer_copy_boxes %x[%next, %zero, %zero] along [1, 2], %ring[%second] : !tile.view<3, bf16, global>, !pipe.ring<2, 8x16xbf16>, !pipe.pipeline_state<2>
// CHECK-NEXT:       }
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
