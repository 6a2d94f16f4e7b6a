// RUN: tessera opt %s | filecheck %s
// A box into shared memory, of this block or of several.
nv.func @f(%x: !tile.view<4, f16, global>, %i: i32, %j: i32) outputs 0 shapes [[B, H, S, 128], [], []] grid [1] threads 128 {
  %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
  %s = nv.alloc : !nv.shared<80x128xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<2>
  nv.tma_load %m[%i, %j, %i], %s, %b[%j] : !nv.map<64x80x2xf16, 128>, !nv.shared<80x128xf16, 128>, !nv.mbarriers<2>
  nv.tma_load %m[%i, %j, %i], %s, %b[%j] multicast %i {k} : !nv.map<64x80x2xf16, 128>, !nv.shared<80x128xf16, 128>, !nv.mbarriers<2>
  %p = nv.tensor_map %x <[3]> : !tile.view<4, f16, global> -> !nv.map<16xf16, 0>
  %t = nv.alloc : !nv.shared<1x8xf16, 16>
  %n = nv.tensor_map %x <[3]> : !tile.view<4, f16, global> -> !nv.map<8xf16, 0>
  nv.tma_load %n[%i], %t, %b[%j] : !nv.map<8xf16, 0>, !nv.shared<1x8xf16, 16>, !nv.mbarriers<2>
  %w = nv.alloc : !nv.shared<80x64xf16, 128>
  %r = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x16xf16, 128>
  nv.tma_load %r[%i, %j], %w row %i, %b[%j] : !nv.map<64x16xf16, 128>, !nv.shared<80x64xf16, 128>, !nv.mbarriers<2>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<4, f16, global>, %i: i32, %j: i32) outputs 0 shapes [[B, H, S, 128], [], []] grid [1] threads 128 {
// CHECK-NEXT:     %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
// CHECK-NEXT:     %s = nv.alloc : !nv.shared<80x128xf16, 128>
// CHECK-NEXT:     %b = nv.mbarriers : !nv.mbarriers<2>
// CHECK-NEXT:     nv.tma_load %m[%i, %j, %i], %s, %b[%j] : !nv.map<64x80x2xf16, 128>, !nv.shared<80x128xf16, 128>, !nv.mbarriers<2>
// CHECK-NEXT:     nv.tma_load %m[%i, %j, %i], %s, %b[%j] multicast %i {k} : !nv.map<64x80x2xf16, 128>, !nv.shared<80x128xf16, 128>, !nv.mbarriers<2>
// CHECK-NEXT:     %p = nv.tensor_map %x <[3]> : !tile.view<4, f16, global> -> !nv.map<16xf16, 0>
// CHECK-NEXT:     %t = nv.alloc : !nv.shared<1x8xf16, 16>
// CHECK-NEXT:     %n = nv.tensor_map %x <[3]> : !tile.view<4, f16, global> -> !nv.map<8xf16, 0>
// CHECK-NEXT:     nv.tma_load %n[%i], %t, %b[%j] : !nv.map<8xf16, 0>, !nv.shared<1x8xf16, 16>, !nv.mbarriers<2>
// CHECK-NEXT:     %w = nv.alloc : !nv.shared<80x64xf16, 128>
// CHECK-NEXT:     %r = nv.tensor_map %x <[3, 2]> : !tile.view<4, f16, global> -> !nv.map<64x16xf16, 128>
// CHECK-NEXT:     nv.tma_load %r[%i, %j], %w row %i, %b[%j] : !nv.map<64x16xf16, 128>, !nv.shared<80x64xf16, 128>, !nv.mbarriers<2>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
