// RUN: tessera opt %s | filecheck %s
// Barriers that count arrivals and bytes.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.mbarriers : !nv.mbarriers<1>
  %b = nv.mbarriers {k} : !nv.mbarriers<4>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.mbarriers : !nv.mbarriers<1>
// CHECK-NEXT:     %b = nv.mbarriers {k} : !nv.mbarriers<4>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
