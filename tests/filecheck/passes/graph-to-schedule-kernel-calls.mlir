// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// A kernel call becomes a launch over the grid of its sizes; a config that was given stays.
tile.func @tiles(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [N, M]] grid ["(M + 15)//16", "(N + 63)//64"] {
  tile.return
}
graph.func @f(%x: !graph.tensor<["2*S", 128], f32>) -> (!graph.tensor<["2*S", 128], f32>) {
  %a = graph.call_kernel @tiles(%x) : (!graph.tensor<["2*S", 128], f32>) -> !graph.tensor<[128, "2*S"], f32>
  %b = graph.call_kernel @tiles(%a) config <block = [16, 64], warps = 4> : (!graph.tensor<[128, "2*S"], f32>) -> !graph.tensor<["2*S", 128], f32>
  graph.return %b : !graph.tensor<["2*S", 128], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @tiles(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [N, M]] grid ["(M + 15)//16", "(N + 63)//64"] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<["2*S", 128], f32>) -> (!graph.tensor<["2*S", 128], f32>) {
// CHECK-NEXT:     %a = schedule.launch @tiles grid <["(S + 7)//8", 2]> config <>(%x) : (!graph.tensor<["2*S", 128], f32>) -> !graph.tensor<[128, "2*S"], f32>
// CHECK-NEXT:     %b = schedule.launch @tiles grid <[8, "(S + 31)//32"]> config <block = [16, 64], warps = 4>(%a) : (!graph.tensor<[128, "2*S"], f32>) -> !graph.tensor<["2*S", 128], f32>
// CHECK-NEXT:     graph.return %b : !graph.tensor<["2*S", 128], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
