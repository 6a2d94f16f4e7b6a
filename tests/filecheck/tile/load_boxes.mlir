// RUN: tessera opt %s | filecheck %s
// Two boxes of rows of a page, one behind the other; rows from an end on are not read.
tile.func @f(%x: !tile.view<4, bf16, global>, %i: index, %j: index) outputs 0 shapes [[N, H, 16, D], [], []] grid [1] {
  %zero = arith.constant 0 : index
  %two = tile.load_boxes %x[%i, %zero, %zero, %zero, %j, %zero, %zero, %zero] along [2, 3] : !tile.view<4, bf16, global> -> tensor<32x64xbf16>
  %cut = tile.load_boxes %x[%i, %zero, %zero, %zero, %j, %zero, %zero, %zero] along [2, 3] until %i {k} : !tile.view<4, bf16, global> -> tensor<32x64xbf16>
  %line = tile.load_boxes %x[%i, %zero, %zero, %zero] along [3] : !tile.view<4, bf16, global> -> tensor<8xbf16>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<4, bf16, global>, %i: index, %j: index) outputs 0 shapes [[N, H, 16, D], [], []] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %two = tile.load_boxes %x[%i, %zero, %zero, %zero, %j, %zero, %zero, %zero] along [2, 3] : !tile.view<4, bf16, global> -> tensor<32x64xbf16>
// CHECK-NEXT:     %cut = tile.load_boxes %x[%i, %zero, %zero, %zero, %j, %zero, %zero, %zero] along [2, 3] until %i {k} : !tile.view<4, bf16, global> -> tensor<32x64xbf16>
// CHECK-NEXT:     %line = tile.load_boxes %x[%i, %zero, %zero, %zero] along [3] : !tile.view<4, bf16, global> -> tensor<8xbf16>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
