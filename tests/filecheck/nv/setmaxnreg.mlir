// RUN: tessera opt %s | filecheck %s
// Registers of each thread of a warpgroup, from here on.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  nv.setmaxnreg<dec> 24
  nv.setmaxnreg<inc> 240 {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     nv.setmaxnreg<dec> 24
// CHECK-NEXT:     nv.setmaxnreg<inc> 240 {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
