// RUN: tessera opt %s | filecheck %s
// So many arrivals end a phase.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  nv.mbarrier_init %b, 1 : !nv.mbarriers<2>
  nv.mbarrier_init %b, 16 {k} : !nv.mbarriers<2>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     %b = nv.mbarriers : !nv.mbarriers<2>
// CHECK-NEXT:     nv.mbarrier_init %b, 1 : !nv.mbarriers<2>
// CHECK-NEXT:     nv.mbarrier_init %b, 16 {k} : !nv.mbarriers<2>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
