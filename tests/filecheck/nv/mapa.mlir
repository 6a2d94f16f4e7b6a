// RUN: tessera opt %s | filecheck %s
// Another block's barriers.
nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %b = nv.mbarriers : !nv.mbarriers<4>
  %c = nv.mapa %b, %i : !nv.mbarriers<4> -> !nv.mbarriers<4, cluster>
  %d = nv.mapa %b, %i {k} : !nv.mbarriers<4> -> !nv.mbarriers<4, cluster>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %b = nv.mbarriers : !nv.mbarriers<4>
// CHECK-NEXT:     %c = nv.mapa %b, %i : !nv.mbarriers<4> -> !nv.mbarriers<4, cluster>
// CHECK-NEXT:     %d = nv.mapa %b, %i {k} : !nv.mbarriers<4> -> !nv.mbarriers<4, cluster>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
