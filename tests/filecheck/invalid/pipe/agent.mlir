tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.roles 2 copies {
    // expected: the one that copies has no number
    %n = pipe.agent
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: pipe.agent is a part of a role
  %n = pipe.agent
  tile.return
}
