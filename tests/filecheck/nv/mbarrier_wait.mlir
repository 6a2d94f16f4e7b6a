// RUN: tessera opt %s | filecheck %s
// Until the phase of a parity has ended.
nv.func @f(%i: i32, %p: i32) outputs 0 shapes [[], []] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  nv.mbarrier_wait %b[%i], %p : !nv.mbarriers<2>
  nv.mbarrier_wait %b[%i], %i {k} : !nv.mbarriers<2>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32, %p: i32) outputs 0 shapes [[], []] grid [1] threads 128 {
// CHECK-NEXT:     %b = nv.mbarriers : !nv.mbarriers<2>
// CHECK-NEXT:     nv.mbarrier_wait %b[%i], %p : !nv.mbarriers<2>
// CHECK-NEXT:     nv.mbarrier_wait %b[%i], %i {k} : !nv.mbarriers<2>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
