// RUN: tessera opt %s | filecheck %s
// How copies see an array: axes of the box, innermost first.
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  %a = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64, 1, 0]> : !tile.view<4, f16, global> -> !nv.map<64x80x2x1x1xf16, 128>
  %b = nv.tensor_map %x <[3]> : !tile.view<4, f16, global> -> !nv.map<256xf16, 0>
  %c = nv.tensor_map %x <[3, 2]> {k} : !tile.view<4, f16, global> -> !nv.map<16x8xf16, 32>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64, 1, 0]> : !tile.view<4, f16, global> -> !nv.map<64x80x2x1x1xf16, 128>
// CHECK-NEXT:     %b = nv.tensor_map %x <[3]> : !tile.view<4, f16, global> -> !nv.map<256xf16, 0>
// CHECK-NEXT:     %c = nv.tensor_map %x <[3, 2]> {k} : !tile.view<4, f16, global> -> !nv.map<16x8xf16, 32>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
