tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
  %box = pipe.mailbox : !pipe.mailbox<2>
  pipe.roles 2 copies {
    %turn = pipe.cursor %box : !pipe.mailbox<2> -> !pipe.cursor<2>
    // expected: the agent that copies knows what it has drawn
    %n = pipe.drawn %box[%turn] : !pipe.mailbox<2>, !pipe.cursor<2>
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
  %box = pipe.mailbox : !pipe.mailbox<2>
  %other = pipe.mailbox : !pipe.mailbox<1>
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %turn = pipe.cursor %other : !pipe.mailbox<1> -> !pipe.cursor<1>
    // expected: a cursor of 1 slots in a ring of 2
    %n = pipe.drawn %box[%turn] : !pipe.mailbox<2>, !pipe.cursor<1>
  }
  tile.return
}
