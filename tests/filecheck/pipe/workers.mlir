// RUN: tessera opt %s | filecheck %s
// How many workers there are.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
  %one = pipe.workers
  %same = pipe.workers {k}
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
// CHECK-NEXT:     %one = pipe.workers
// CHECK-NEXT:     %same = pipe.workers {k}
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
