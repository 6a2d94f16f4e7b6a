// RUN: tessera opt %s | filecheck %s
// The same memory as other tiles: rows of one panel are cut, or panels apart.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<4x128x64xbf16, 128>
  %b = nv.recast %a : !nv.shared<4x128x64xbf16, 128> -> !nv.shared<4x2x64x64xbf16, 128>
  %c = nv.alloc : !nv.shared<4x64x256xbf16, 128>
  %d = nv.recast %c {k} : !nv.shared<4x64x256xbf16, 128> -> !nv.shared<4x4x64x64xbf16, 128>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<4x128x64xbf16, 128>
// CHECK-NEXT:     %b = nv.recast %a : !nv.shared<4x128x64xbf16, 128> -> !nv.shared<4x2x64x64xbf16, 128>
// CHECK-NEXT:     %c = nv.alloc : !nv.shared<4x64x256xbf16, 128>
// CHECK-NEXT:     %d = nv.recast %c {k} : !nv.shared<4x64x256xbf16, 128> -> !nv.shared<4x4x64x64xbf16, 128>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
