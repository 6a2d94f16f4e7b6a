// RUN: tessera opt %s | filecheck %s
// A body gives values of its own and of those around it, one twice.
graph.func @f(%p: !graph.tensor<[], i1>) -> (!graph.tensor<[], i1>, !graph.tensor<[], i1>) {
  %a, %b = graph.cond %p then {
    graph.yield %p, %p : !graph.tensor<[], i1>, !graph.tensor<[], i1> {k}
  } else {
    %q = graph.ew<not> %p : !graph.tensor<[], i1> -> !graph.tensor<[], i1>
    graph.yield %p, %q : !graph.tensor<[], i1>, !graph.tensor<[], i1>
  } : !graph.tensor<[], i1> -> (!graph.tensor<[], i1>, !graph.tensor<[], i1>)
  graph.return %a, %b : !graph.tensor<[], i1>, !graph.tensor<[], i1>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%p: !graph.tensor<[], i1>) -> (!graph.tensor<[], i1>, !graph.tensor<[], i1>) {
// CHECK-NEXT:     %a, %b = graph.cond %p then {
// CHECK-NEXT:       graph.yield %p, %p : !graph.tensor<[], i1>, !graph.tensor<[], i1> {k}
// CHECK-NEXT:     } else {
// CHECK-NEXT:       %q = graph.ew<not> %p : !graph.tensor<[], i1> -> !graph.tensor<[], i1>
// CHECK-NEXT:       graph.yield %p, %q : !graph.tensor<[], i1>, !graph.tensor<[], i1>
// CHECK-NEXT:     } : !graph.tensor<[], i1> -> (!graph.tensor<[], i1>, !graph.tensor<[], i1>)
// CHECK-NEXT:     graph.return %a, %b : !graph.tensor<[], i1>, !graph.tensor<[], i1>
// CHECK-NEXT:   }
// CHECK-NEXT: }
