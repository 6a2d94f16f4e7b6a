// RUN: tessera opt %s -p "apply-facts{function=f}" -f "arg0.size[0] = 40" | filecheck %s
// The function to specialise may be named; calls and launches in it follow.
tile.func @copy(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid ["(N + 15)//16"] {
  tile.return
}
graph.func @other(%x: !graph.tensor<[S], f32>) {
  graph.return
}
graph.func @f(%x: !graph.tensor<[S], f32>) -> (!graph.tensor<[S], f32>) {
  %a = graph.call_kernel @copy(%x) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  %b = schedule.launch @copy grid <["(S + 15)//16"]> config <>(%a) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  graph.return %b : !graph.tensor<[S], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @copy(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid ["(N + 15)//16"] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @other(%x: !graph.tensor<[S], f32>) {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[40], f32>) -> (!graph.tensor<[40], f32>) {
// CHECK-NEXT:     %a = graph.call_kernel @copy(%x) : (!graph.tensor<[40], f32>) -> !graph.tensor<[40], f32>
// CHECK-NEXT:     %b = schedule.launch @copy grid <[3]> config <>(%a) : (!graph.tensor<[40], f32>) -> !graph.tensor<[40], f32>
// CHECK-NEXT:     graph.return %b : !graph.tensor<[40], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.size[0] = 40
// CHECK-NOT: guard
