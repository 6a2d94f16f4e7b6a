tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a function for persistent CTAs has the attribute `persistent`
  %n = pipe.cta_count
  tile.return
}
