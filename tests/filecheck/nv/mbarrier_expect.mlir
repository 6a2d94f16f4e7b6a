// RUN: tessera opt %s | filecheck %s
// Arrives, and says how many bytes are to come.
nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  nv.mbarrier_expect %b[%i], 49152 : !nv.mbarriers<2>
  nv.mbarrier_expect %b[%i], 16 {k} : !nv.mbarriers<2>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %b = nv.mbarriers : !nv.mbarriers<2>
// CHECK-NEXT:     nv.mbarrier_expect %b[%i], 49152 : !nv.mbarriers<2>
// CHECK-NEXT:     nv.mbarrier_expect %b[%i], 16 {k} : !nv.mbarriers<2>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
