// RUN: tessera opt %s | filecheck %s
// Slots for numbers of programs.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %box = pipe.work_queue : !pipe.work_queue<2>
  %other = pipe.work_queue {k} : !pipe.work_queue<1>
  %state = pipe.pipeline_state %other : !pipe.work_queue<1> -> !pipe.pipeline_state<1>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %box = pipe.work_queue : !pipe.work_queue<2>
// CHECK-NEXT:     %other = pipe.work_queue {k} : !pipe.work_queue<1>
// CHECK-NEXT:     %state = pipe.pipeline_state %other : !pipe.work_queue<1> -> !pipe.pipeline_state<1>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
