// RUN: tessera opt %s | filecheck %s
// Blocks take turns: each waits for the one before it, and lets the next one in.
nv.func @f() outputs 0 shapes [] grid [4] threads 32 attributes {counters = 4 : i64} {
  nv.semaphore_wait {k}
  nv.semaphore_signal
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f() outputs 0 shapes [] grid [4] threads 32 attributes {counters = 4 : i64} {
// CHECK-NEXT:     nv.semaphore_wait {k}
// CHECK-NEXT:     nv.semaphore_signal
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
