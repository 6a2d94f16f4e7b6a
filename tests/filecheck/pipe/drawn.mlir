// RUN: tessera opt %s | filecheck %s
// Agents that compute read what was drawn.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
  %box = pipe.mailbox : !pipe.mailbox<2>
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %turn = pipe.cursor %box : !pipe.mailbox<2> -> !pipe.cursor<2>
    %first = pipe.drawn %box[%turn] : !pipe.mailbox<2>, !pipe.cursor<2>
    %next = pipe.next %turn : !pipe.cursor<2>
    %second = pipe.drawn %box[%next] {k} : !pipe.mailbox<2>, !pipe.cursor<2>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
// CHECK-NEXT:     %box = pipe.mailbox : !pipe.mailbox<2>
// CHECK-NEXT:     pipe.roles 2 copies {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } computes {
// CHECK-NEXT:       %turn = pipe.cursor %box : !pipe.mailbox<2> -> !pipe.cursor<2>
// CHECK-NEXT:       %first = pipe.drawn %box[%turn] : !pipe.mailbox<2>, !pipe.cursor<2>
// CHECK-NEXT:       %next = pipe.next %turn : !pipe.cursor<2>
// CHECK-NEXT:       %second = pipe.drawn %box[%next] {k} : !pipe.mailbox<2>, !pipe.cursor<2>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
