tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    // expected: a number of dots is not negative, got -1
    pipe.dots_wait -1
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.warp_specialize 2 producer {
    // expected: the producer has no dots
    pipe.dots_wait 0
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: pipe.dots_wait is a part of pipe.warp_specialize
  pipe.dots_wait 0
  tile.return
}
