// RUN: tessera opt %s | filecheck %s
// Branches see the values around them; they may have effects, and give any number of results.
graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[S, 4], f32>) -> (!graph.tensor<[S, 4], f32>) effects [io] {
  %a, %b = graph.cond %p then {
    %e = graph.ew<exp> %x : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
    graph.yield %e, %p : !graph.tensor<[S, 4], f32>, !graph.tensor<[], i1>
  } else {
    graph.print "other", %x : !graph.tensor<[S, 4], f32>
    graph.yield %x, %p : !graph.tensor<[S, 4], f32>, !graph.tensor<[], i1>
  } {k} : !graph.tensor<[], i1> -> (!graph.tensor<[S, 4], f32>, !graph.tensor<[], i1>)
  graph.cond %b then {
    graph.yield
  } else {
    graph.yield
  } : !graph.tensor<[], i1> -> ()
  graph.return %a : !graph.tensor<[S, 4], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%p: !graph.tensor<[], i1>, %x: !graph.tensor<[S, 4], f32>) -> (!graph.tensor<[S, 4], f32>) effects [io] {
// CHECK-NEXT:     %a, %b = graph.cond %p then {
// CHECK-NEXT:       %e = graph.ew<exp> %x : !graph.tensor<[S, 4], f32> -> !graph.tensor<[S, 4], f32>
// CHECK-NEXT:       graph.yield %e, %p : !graph.tensor<[S, 4], f32>, !graph.tensor<[], i1>
// CHECK-NEXT:     } else {
// CHECK-NEXT:       graph.print "other", %x : !graph.tensor<[S, 4], f32>
// CHECK-NEXT:       graph.yield %x, %p : !graph.tensor<[S, 4], f32>, !graph.tensor<[], i1>
// CHECK-NEXT:     } {k} : !graph.tensor<[], i1> -> (!graph.tensor<[S, 4], f32>, !graph.tensor<[], i1>)
// CHECK-NEXT:     graph.cond %b then {
// CHECK-NEXT:       graph.yield
// CHECK-NEXT:     } else {
// CHECK-NEXT:       graph.yield
// CHECK-NEXT:     } : !graph.tensor<[], i1> -> ()
// CHECK-NEXT:     graph.return %a : !graph.tensor<[S, 4], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
