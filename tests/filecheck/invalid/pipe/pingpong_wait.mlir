tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.warp_specialize 2 producer {
    // expected: only consumers have ping-pong barriers
    pipe.pingpong_wait
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: pipe.pingpong_wait is a part of pipe.warp_specialize
  pipe.pingpong_wait
  tile.return
}
