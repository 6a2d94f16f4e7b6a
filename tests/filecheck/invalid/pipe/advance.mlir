tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: pipe.pipeline_state
  %n = pipe.advance %i : index
  tile.return
}
