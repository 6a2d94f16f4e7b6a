// RUN: tessera opt %s | filecheck %s
// A function that is run by workers, not by programs.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
  %one = pipe.worker
  %same = pipe.worker {k}
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
// CHECK-NEXT:     %one = pipe.worker
// CHECK-NEXT:     %same = pipe.worker {k}
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
