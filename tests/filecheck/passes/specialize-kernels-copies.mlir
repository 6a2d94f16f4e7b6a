// RUN: tessera opt %s -p specialize-kernels | filecheck %s
// One copy per set of sizes; the general kernel stays while it has calls; launches follow, too.
tile.func @k(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid ["(N + 15)//16"] {
  tile.return
}
tile.func @k_N8() outputs 0 shapes [] grid [] {
  tile.return
}
graph.func @f(%a: !graph.tensor<[8], f32>, %b: !graph.tensor<[24], f32>, %c: !graph.tensor<[S], f32>) {
  %u = graph.call_kernel @k(%a) : (!graph.tensor<[8], f32>) -> !graph.tensor<[8], f32>
  %v = graph.call_kernel @k(%u) : (!graph.tensor<[8], f32>) -> !graph.tensor<[8], f32>
  %w = schedule.launch @k grid <[2]> config <>(%b) : (!graph.tensor<[24], f32>) -> !graph.tensor<[24], f32>
  %x = graph.call_kernel @k(%c) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @k_N8_2(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[8], [8]] grid [1] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @k_N24(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[24], [24]] grid [2] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @k(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid ["(N + 15)//16"] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   tile.func @k_N8() outputs 0 shapes [] grid [] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%a: !graph.tensor<[8], f32>, %b: !graph.tensor<[24], f32>, %c: !graph.tensor<[S], f32>) {
// CHECK-NEXT:     %u = graph.call_kernel @k_N8_2(%a) : (!graph.tensor<[8], f32>) -> !graph.tensor<[8], f32>
// CHECK-NEXT:     %v = graph.call_kernel @k_N8_2(%u) : (!graph.tensor<[8], f32>) -> !graph.tensor<[8], f32>
// CHECK-NEXT:     %w = schedule.launch @k_N24 grid <[2]> config <>(%b) : (!graph.tensor<[24], f32>) -> !graph.tensor<[24], f32>
// CHECK-NEXT:     %x = graph.call_kernel @k(%c) : (!graph.tensor<[S], f32>) -> !graph.tensor<[S], f32>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
