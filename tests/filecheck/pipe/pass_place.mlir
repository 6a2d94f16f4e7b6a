// RUN: tessera opt %s | filecheck %s
// Hands the place to the next agent.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    pipe.await_place
    pipe.pass_place {k}
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     pipe.roles 2 copies {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } computes {
// CHECK-NEXT:       pipe.await_place
// CHECK-NEXT:       pipe.pass_place {k}
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
