// RUN: tessera opt %s -p cse | filecheck %s
// Calls of functions without effects merge, also of kernels; others are made every time.
tile.func @copy(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
  tile.return
}
tile.func @report(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
  tile.debug_print "here"
  tile.return
}
graph.func @pure(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) {
  graph.return %x : !graph.tensor<[S], f32>
}
graph.func @noisy(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) effects [random] {
  graph.return %x : !graph.tensor<[S], f32>
}
graph.func @f(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>) effects [io, random] {
  %a = graph.call @pure(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %b = graph.call @pure(%a) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %c = graph.call @pure(%a) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %d = graph.call_kernel @copy(%c) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %e = graph.call_kernel @copy(%b) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %f = graph.call @noisy(%d) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %g = graph.call @noisy(%e) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %h = graph.call_kernel @report(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %i = graph.call_kernel @report(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  graph.return %f, %g, %h, %i : !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @copy(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @report(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [1] {
// CHECK-NEXT:     tile.debug_print "here"
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @pure(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) {
// CHECK-NEXT:     graph.return %x : !graph.tensor<[S], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @noisy(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) effects [random] {
// CHECK-NEXT:     graph.return %x : !graph.tensor<[S], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>) effects [io, random] {
// CHECK-NEXT:     %a = graph.call @pure(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %b = graph.call @pure(%a) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %d = graph.call_kernel @copy(%b) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %f = graph.call @noisy(%d) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %g = graph.call @noisy(%d) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %h = graph.call_kernel @report(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
// CHECK-NEXT:     %i = graph.call_kernel @report(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
// CHECK-NEXT:     graph.return %f, %g, %h, %i : !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>, !graph.tensor<[S], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
