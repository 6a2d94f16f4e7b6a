// RUN: tessera opt %s | filecheck %s
// Memory of the block, for one tile or for several; the last number is the width of a panel in bytes.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<64x32xbf16, 64>
  %b = nv.alloc {k} : !nv.shared<4x2x64x32xf32, 128>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<64x32xbf16, 64>
// CHECK-NEXT:     %b = nv.alloc {k} : !nv.shared<4x2x64x32xf32, 128>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
