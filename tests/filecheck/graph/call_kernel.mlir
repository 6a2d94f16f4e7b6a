// RUN: tessera opt %s | filecheck %s
// Tensors go in as views, scalars as they are; sizes are matched by symbol; a config may fix the schedule.
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
  %y = graph.call_kernel @scale(%x, %factor) : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
  %z = graph.call_kernel @scale(%y, %factor) config <warps = 4> : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
  %w = graph.call_kernel @scale(%z, %factor) config <swizzle = "xor", vector = 8, stages = 3, warps = 8, block = [128, 64]> {hot} : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
  %v = graph.call_kernel @scale(%w, %factor) config <> : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> (!graph.tensor<["2*S + 1", 8], bf16>)
  %low, %high = graph.call_kernel @split(%bytes) : (!graph.tensor<[64], ui8>) -> (!graph.tensor<[32], i4>, !graph.tensor<[], i1>)
  graph.call_kernel @report() : () -> ()
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
// CHECK-NEXT:     %y = graph.call_kernel @scale(%x, %factor) : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
// CHECK-NEXT:     %z = graph.call_kernel @scale(%y, %factor) config <warps = 4> : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
// CHECK-NEXT:     %w = graph.call_kernel @scale(%z, %factor) config <block = [128, 64], warps = 8, stages = 3, vector = 8, swizzle = "xor"> {hot} : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
// CHECK-NEXT:     %v = graph.call_kernel @scale(%w, %factor) config <> : (!graph.tensor<["2*S + 1", 8], bf16>, f32) -> !graph.tensor<["2*S + 1", 8], bf16>
// CHECK-NEXT:     %low, %high = graph.call_kernel @split(%bytes) : (!graph.tensor<[64], ui8>) -> (!graph.tensor<[32], i4>, !graph.tensor<[], i1>)
// CHECK-NEXT:     graph.call_kernel @report() : () -> ()
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
