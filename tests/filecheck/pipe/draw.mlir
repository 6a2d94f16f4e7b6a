// RUN: tessera opt %s | filecheck %s
// The agent that copies draws the number of a program, for itself and for the others.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
  %box = pipe.mailbox : !pipe.mailbox<2>
  pipe.roles 2 copies {
    %turn = pipe.cursor %box : !pipe.mailbox<2> -> !pipe.cursor<2>
    %first = pipe.draw %box[%turn] : !pipe.mailbox<2>, !pipe.cursor<2>
    %next = pipe.next %turn : !pipe.cursor<2>
    %second = pipe.draw %box[%next] {k} : !pipe.mailbox<2>, !pipe.cursor<2>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
// CHECK-NEXT:     %box = pipe.mailbox : !pipe.mailbox<2>
// CHECK-NEXT:     pipe.roles 2 copies {
// CHECK-NEXT:       %turn = pipe.cursor %box : !pipe.mailbox<2> -> !pipe.cursor<2>
// CHECK-NEXT:       %first = pipe.draw %box[%turn] : !pipe.mailbox<2>, !pipe.cursor<2>
// CHECK-NEXT:       %next = pipe.next %turn : !pipe.cursor<2>
// CHECK-NEXT:       %second = pipe.draw %box[%next] {k} : !pipe.mailbox<2>, !pipe.cursor<2>
// CHECK-NEXT:     } computes {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
