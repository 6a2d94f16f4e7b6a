tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  // expected: a number of groups is not negative, got -1
  pipe.wait -1
  tile.return
}
// -----
// expected: pipe.wait is a part of a tile function
pipe.wait 0
