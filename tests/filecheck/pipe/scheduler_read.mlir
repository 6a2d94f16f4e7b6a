// RUN: tessera opt %s | filecheck %s
// Consumers read the number that was fetched.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
  %box = pipe.work_queue : !pipe.work_queue<2>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %box : !pipe.work_queue<2> -> !pipe.pipeline_state<2>
    %first = pipe.scheduler_read %box[%state] : !pipe.work_queue<2>, !pipe.pipeline_state<2>
    %next = pipe.advance %state : !pipe.pipeline_state<2>
    %second = pipe.scheduler_read %box[%next] {k} : !pipe.work_queue<2>, !pipe.pipeline_state<2>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
// CHECK-NEXT:     %box = pipe.work_queue : !pipe.work_queue<2>
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %state = pipe.pipeline_state %box : !pipe.work_queue<2> -> !pipe.pipeline_state<2>
// CHECK-NEXT:       %first = pipe.scheduler_read %box[%state] : !pipe.work_queue<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:       %next = pipe.advance %state : !pipe.pipeline_state<2>
// CHECK-NEXT:       %second = pipe.scheduler_read %box[%next] {k} : !pipe.work_queue<2>, !pipe.pipeline_state<2>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
