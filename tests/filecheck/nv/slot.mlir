// RUN: tessera opt %s | filecheck %s
// One tile of several, by an index or a number of 32 bits.
nv.func @f(%i: index, %n: i32) outputs 0 shapes [[], []] grid [1] threads 128 {
  %a = nv.alloc : !nv.shared<4x2x64x32xbf16, 64>
  %b = nv.slot %a[%i] : !nv.shared<4x2x64x32xbf16, 64> -> !nv.shared<2x64x32xbf16, 64>
  %c = nv.slot %b[%n] {k} : !nv.shared<2x64x32xbf16, 64> -> !nv.shared<64x32xbf16, 64>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: index, %n: i32) outputs 0 shapes [[], []] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.alloc : !nv.shared<4x2x64x32xbf16, 64>
// CHECK-NEXT:     %b = nv.slot %a[%i] : !nv.shared<4x2x64x32xbf16, 64> -> !nv.shared<2x64x32xbf16, 64>
// CHECK-NEXT:     %c = nv.slot %b[%n] {k} : !nv.shared<2x64x32xbf16, 64> -> !nv.shared<64x32xbf16, 64>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
