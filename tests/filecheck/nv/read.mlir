// RUN: tessera opt %s | filecheck %s
// A tile, a part of it, or its transpose, in a layout.
nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
  %a = nv.alloc : !nv.shared<16x32xbf16, 64>
  %b = nv.read %a[0, 16] : !nv.shared<16x32xbf16, 64> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  %c = nv.read %a[0, 0] transposed {k} : !nv.shared<16x32xbf16, 64> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<16x32xbf16, 64>
// CHECK-NEXT:     %b = nv.read %a[0, 16] : !nv.shared<16x32xbf16, 64> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     %c = nv.read %a[0, 0] transposed {k} : !nv.shared<16x32xbf16, 64> -> tensor<16x16xbf16, #nv.layout<[4:1*2, 8:0*1], [2:1*1, 2:0*8, 2:1*8]>>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
