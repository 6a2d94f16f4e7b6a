tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
  %box = pipe.work_queue : !pipe.work_queue<2>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %box : !pipe.work_queue<2> -> !pipe.pipeline_state<2>
    // expected: the producer fetches for all
    %n = pipe.scheduler_fetch %box[%state] : !pipe.work_queue<2>, !pipe.pipeline_state<2>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %box = pipe.work_queue : !pipe.work_queue<2>
  pipe.warp_specialize 2 producer {
    %state = pipe.pipeline_state %box : !pipe.work_queue<2> -> !pipe.pipeline_state<2>
    // expected: a function for persistent CTAs has the attribute `persistent`
    %n = pipe.scheduler_fetch %box[%state] : !pipe.work_queue<2>, !pipe.pipeline_state<2>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
  %box = pipe.work_queue : !pipe.work_queue<2>
  %other = pipe.work_queue : !pipe.work_queue<3>
  pipe.warp_specialize 2 producer {
    %state = pipe.pipeline_state %other : !pipe.work_queue<3> -> !pipe.pipeline_state<3>
    // expected: a pipeline state of 3 slots in a ring of 2
    %n = pipe.scheduler_fetch %box[%state] : !pipe.work_queue<2>, !pipe.pipeline_state<3>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
