// RUN: tessera opt %s | filecheck %s
// Here, or in another block of the cluster.
nv.func @f(%i: i32, %c: i1) outputs 0 shapes [[], []] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<2>
  nv.mbarrier_arrive %b[%i] : !nv.mbarriers<2>
  nv.mbarrier_arrive %b[%i] if %c : !nv.mbarriers<2>
  %e = nv.mapa %b, %i : !nv.mbarriers<2> -> !nv.mbarriers<2, cluster>
  nv.mbarrier_arrive %e[%i] if %c {k} : !nv.mbarriers<2, cluster>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32, %c: i1) outputs 0 shapes [[], []] grid [1] threads 128 {
// CHECK-NEXT:     %b = nv.mbarriers : !nv.mbarriers<2>
// CHECK-NEXT:     nv.mbarrier_arrive %b[%i] : !nv.mbarriers<2>
// CHECK-NEXT:     nv.mbarrier_arrive %b[%i] if %c : !nv.mbarriers<2>
// CHECK-NEXT:     %e = nv.mapa %b, %i : !nv.mbarriers<2> -> !nv.mbarriers<2, cluster>
// CHECK-NEXT:     nv.mbarrier_arrive %e[%i] if %c {k} : !nv.mbarriers<2, cluster>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
