tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.roles 2 copies {
    // expected: only agents that compute have a place in the order
    pipe.await_place
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: pipe.await_place is a part of a role
  pipe.await_place
  tile.return
}
