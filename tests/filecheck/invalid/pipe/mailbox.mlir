tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a ring has at least one slot, got 0
  %box = pipe.mailbox : !pipe.mailbox<0>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %box = pipe.mailbox : !pipe.mailbox<2>
  // expected: a cursor of 3 slots in a ring of 2
  %turn = pipe.cursor %box : !pipe.mailbox<2> -> !pipe.cursor<3>
  tile.return
}
