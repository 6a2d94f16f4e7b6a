tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a ring has at least one slot, got 0
  %box = pipe.work_queue : !pipe.work_queue<0>
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %box = pipe.work_queue : !pipe.work_queue<2>
  // expected: a pipeline state of 3 slots in a ring of 2
  %state = pipe.pipeline_state %box : !pipe.work_queue<2> -> !pipe.pipeline_state<3>
  tile.return
}
