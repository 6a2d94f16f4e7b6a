// RUN: tessera opt %s | filecheck %s
// Numbers of a thread, and how many blocks there are.
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
  %a = nv.id<thread>
  %b = nv.id<lane>
  %c = nv.id<warp>
  %d = nv.id<warpgroup>
  %e = nv.id<block>
  %g = nv.id<blocks>
  %h = nv.id<rank> {k}
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
// CHECK-NEXT:     %a = nv.id<thread>
// CHECK-NEXT:     %b = nv.id<lane>
// CHECK-NEXT:     %c = nv.id<warp>
// CHECK-NEXT:     %d = nv.id<warpgroup>
// CHECK-NEXT:     %e = nv.id<block>
// CHECK-NEXT:     %g = nv.id<blocks>
// CHECK-NEXT:     %h = nv.id<rank> {k}
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
