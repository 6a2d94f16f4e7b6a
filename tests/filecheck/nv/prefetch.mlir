// RUN: tessera opt %s | filecheck %s
nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  %a = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x8xf16, 128>
  nv.prefetch %a : !nv.map<64x8xf16, 128>
  nv.prefetch %a {k} : !nv.map<64x8xf16, 128>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x8xf16, 128>
// CHECK-NEXT:     nv.prefetch %a : !nv.map<64x8xf16, 128>
// CHECK-NEXT:     nv.prefetch %a {k} : !nv.map<64x8xf16, 128>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
