// RUN: tessera opt %s | filecheck %s
// A tile out of shared memory.
nv.func @f(%x: !tile.view<4, f16, global>, %i: i32, %j: i32, %c: i1) outputs 0 shapes [[B, H, S, 128], [], [], []] grid [1] threads 128 {
  %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
  %s = nv.alloc : !nv.shared<80x128xf16, 128>
  %b = nv.mbarriers : !nv.mbarriers<2>
  nv.tma_store %s, %m[%i, %j, %i] : !nv.shared<80x128xf16, 128>, !nv.map<64x80x2xf16, 128>
  nv.tma_store %s, %m[%i, %j, %i] if %c {k} : !nv.shared<80x128xf16, 128>, !nv.map<64x80x2xf16, 128>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<4, f16, global>, %i: i32, %j: i32, %c: i1) outputs 0 shapes [[B, H, S, 128], [], [], []] grid [1] threads 128 {
// CHECK-NEXT:     %m = nv.tensor_map %x <[3 inner 64, 2, 3 outer 64]> : !tile.view<4, f16, global> -> !nv.map<64x80x2xf16, 128>
// CHECK-NEXT:     %s = nv.alloc : !nv.shared<80x128xf16, 128>
// CHECK-NEXT:     %b = nv.mbarriers : !nv.mbarriers<2>
// CHECK-NEXT:     nv.tma_store %s, %m[%i, %j, %i] : !nv.shared<80x128xf16, 128>, !nv.map<64x80x2xf16, 128>
// CHECK-NEXT:     nv.tma_store %s, %m[%i, %j, %i] if %c {k} : !nv.shared<80x128xf16, 128>, !nv.map<64x80x2xf16, 128>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
