tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.roles 2 copies {
    %nothing = arith.constant 0 : index
  } computes {
    // expected: a number of products is not negative, got -1
    pipe.dots_behind -1
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.roles 2 copies {
    // expected: the agent that copies has no products
    pipe.dots_behind 0
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: pipe.dots_behind is a part of a role
  pipe.dots_behind 0
  tile.return
}
