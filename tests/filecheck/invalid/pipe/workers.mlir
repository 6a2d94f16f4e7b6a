tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a function with workers has the attribute `workers`
  %n = pipe.workers
  tile.return
}
