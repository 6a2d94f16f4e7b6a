// RUN: tessera opt %s | filecheck %s
// Waits until the agent before has left.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    pipe.enter
    pipe.leave
    pipe.enter {k}
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     pipe.roles 2 copies {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } computes {
// CHECK-NEXT:       pipe.enter
// CHECK-NEXT:       pipe.leave
// CHECK-NEXT:       pipe.enter {k}
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
