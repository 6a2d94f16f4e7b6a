// RUN: tessera opt %s | filecheck %s
// Doubles %x until its count reaches %n; a loop may carry nothing, and go on for what it reads.
graph.state @left : !graph.tensor<[], i1>
graph.func @f(%n: !graph.tensor<[], i64>, %i: !graph.tensor<[], i64>, %x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) effects ["state(left)"] {
  %j, %y = graph.while (%i, %x) if {
  ^bb0(%k: !graph.tensor<[], i64>, %u: !graph.tensor<[S], f32>):
    %c = graph.ew<lt> %k, %n : !graph.tensor<[], i64>, !graph.tensor<[], i64> -> !graph.tensor<[], i1>
    graph.yield %c : !graph.tensor<[], i1>
  } do {
  ^bb0(%k: !graph.tensor<[], i64>, %u: !graph.tensor<[S], f32>):
    %next = graph.ew<sub> %k, %n : !graph.tensor<[], i64>, !graph.tensor<[], i64> -> !graph.tensor<[], i64>
    %twice = graph.ew<add> %u, %u : !graph.tensor<[S], f32>, !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
    graph.yield %next, %twice : !graph.tensor<[], i64>, !graph.tensor<[S], f32>
  } {k} : (!graph.tensor<[], i64>, !graph.tensor<[S], f32>) -> (!graph.tensor<[], i64>, !graph.tensor<[S], f32>)
  graph.while () if {
    %l = graph.state_read @left : !graph.tensor<[], i1>
    graph.yield %l : !graph.tensor<[], i1>
  } do {
    %l = graph.state_read @left : !graph.tensor<[], i1>
    %m = graph.ew<not> %l : !graph.tensor<[], i1> -> !graph.tensor<[], i1>
    graph.state_write @left, %m : !graph.tensor<[], i1>
    graph.yield
  } : () -> ()
  graph.return %y : !graph.tensor<[S], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.state @left : !graph.tensor<[], i1>
// CHECK-NEXT:   graph.func @f(%n: !graph.tensor<[], i64>, %i: !graph.tensor<[], i64>, %x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) effects ["state(left)"] {
// CHECK-NEXT:     %j, %y = graph.while(%i, %x) if {
// CHECK-NEXT:     ^bb0(%k: !graph.tensor<[], i64>, %u: !graph.tensor<[S], f32>):
// CHECK-NEXT:       %c = graph.ew<lt> %k, %n : !graph.tensor<[], i64>, !graph.tensor<[], i64> -> !graph.tensor<[], i1>
// CHECK-NEXT:       graph.yield %c : !graph.tensor<[], i1>
// CHECK-NEXT:     } do {
// CHECK-NEXT:     ^bb0(%k_1: !graph.tensor<[], i64>, %u_1: !graph.tensor<[S], f32>):
// CHECK-NEXT:       %next = graph.ew<sub> %k_1, %n : !graph.tensor<[], i64>, !graph.tensor<[], i64> -> !graph.tensor<[], i64>
// CHECK-NEXT:       %twice = graph.ew<add> %u_1, %u_1 : !graph.tensor<[S], f32>, !graph.tensor<[S], f32> -> !graph.tensor<[S], f32>
// CHECK-NEXT:       graph.yield %next, %twice : !graph.tensor<[], i64>, !graph.tensor<[S], f32>
// CHECK-NEXT:     } {k} : (!graph.tensor<[], i64>, !graph.tensor<[S], f32>) -> (!graph.tensor<[], i64>, !graph.tensor<[S], f32>)
// CHECK-NEXT:     graph.while() if {
// CHECK-NEXT:       %l = graph.state_read @left : !graph.tensor<[], i1>
// CHECK-NEXT:       graph.yield %l : !graph.tensor<[], i1>
// CHECK-NEXT:     } do {
// CHECK-NEXT:       %l_1 = graph.state_read @left : !graph.tensor<[], i1>
// CHECK-NEXT:       %m = graph.ew<not> %l_1 : !graph.tensor<[], i1> -> !graph.tensor<[], i1>
// CHECK-NEXT:       graph.state_write @left, %m : !graph.tensor<[], i1>
// CHECK-NEXT:       graph.yield
// CHECK-NEXT:     } : () -> ()
// CHECK-NEXT:     graph.return %y : !graph.tensor<[S], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
