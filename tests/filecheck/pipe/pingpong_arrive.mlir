// RUN: tessera opt %s | filecheck %s
// Lets the next consumer go on.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    pipe.pingpong_wait
    pipe.pingpong_arrive {k}
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       pipe.pingpong_wait
// CHECK-NEXT:       pipe.pingpong_arrive {k}
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
