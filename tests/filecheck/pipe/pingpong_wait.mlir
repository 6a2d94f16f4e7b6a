// RUN: tessera opt %s | filecheck %s
// Waits until the consumer before this one has arrived.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    pipe.pingpong_wait {k}
    pipe.pingpong_arrive
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       pipe.pingpong_wait {k}
// CHECK-NEXT:       pipe.pingpong_arrive
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
