// RUN: tessera opt %s | filecheck %s
// Counters of the launch: what was there before.
nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
  %a = nv.count 0, %i
  %b = nv.count 15, %a {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%i: i32) outputs 0 shapes [[]] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.count 0, %i
// CHECK-NEXT:     %b = nv.count 15, %a {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
