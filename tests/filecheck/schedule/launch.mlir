// RUN: tessera opt %s | filecheck %s
// Like graph.call_kernel, with the grid spelled out for the sizes of this call.
tile.func @scale(%x: !tile.view<2, bf16, global>, %factor: f32, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[M, N], [], [M, N]] grid ["(M + 15)//16", N] {
  tile.return
}
tile.func @split(%x: !tile.view<1, ui8, global>, %low: !tile.view<1, i4, global>, %high: !tile.view<0, i1, global>) outputs 2 shapes [["2*N"], [N], []] grid [] {
  tile.return
}
tile.func @report() outputs 0 shapes [] grid [1] {
  tile.debug_print "here"
  tile.return
}
graph.func @f(%x: !graph.tensor<["2*S + 1", 8], bf16>, %factor: f32, %bytes: !graph.tensor<[64], ui8>) effects [io] {
  %y = schedule.launch @scale grid <["(2*S + 16)//16", 8]> config <>(%x, %factor) : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
  %z = schedule.launch @scale grid <["1 + S//8", 8]> config <swizzle = "none", vector = 8, stages = 3, warps = 8, block = [128, 64]>(%y, %factor) {hot} : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
  %low, %high = schedule.launch @split grid <[]> config <block = []>(%bytes) : (!graph.tensor<[64], ui8>) -> (!graph.tensor<[32], i4>, !graph.tensor<[], i1>)
  schedule.launch @report grid <[1]> config <warps = 1>() : () -> ()
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @scale(%x: !tile.view<2, bf16, global>, %factor: f32, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[M, N], [], [M, N]] grid ["(M + 15)//16", N] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @split(%x: !tile.view<1, ui8, global>, %low: !tile.view<1, i4, global>, %high: !tile.view<0, i1, global>) outputs 2 shapes [["2*N"], [N], []] grid [] {
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   tile.func @report() outputs 0 shapes [] grid [1] {
// CHECK-NEXT:     tile.debug_print "here"
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<["2*S + 1", 8], bf16>, %factor: f32, %bytes: !graph.tensor<[64], ui8>) effects [io] {
// CHECK-NEXT:     %y = schedule.launch @scale grid <["S//8 + 1", 8]> config <>(%x, %factor) : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
// CHECK-NEXT:     %z = schedule.launch @scale grid <["S//8 + 1", 8]> config <block = [128, 64], warps = 8, stages = 3, vector = 8, swizzle = "none">(%y, %factor) {hot} : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
// CHECK-NEXT:     %low, %high = schedule.launch @split grid <[]> config <block = []>(%bytes) : (!graph.tensor<[64], ui8>) -> (!graph.tensor<[32], i4>, !graph.tensor<[], i1>)
// CHECK-NEXT:     schedule.launch @report grid <[1]> config <warps = 1>() : () -> ()
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
