// RUN: tessera opt %s -p "graph-to-schedule,schedule-to-tile,canonicalize,cse" --level tile | filecheck %s
// A loop over the depth, as it is written by hand.
graph.func @f(%x: !graph.tensor<[B, S, 64], bf16>, %w: !graph.tensor<[128, 64], bf16>, %bias: !graph.tensor<[128], bf16>) -> (!graph.tensor<[B, S, 128], bf16>) {
  %t = graph.transpose %w, [1, 0] : !graph.tensor<[128, 64], bf16> -> !graph.tensor<[64, 128], bf16>
  %p = graph.matmul %x, %t : !graph.tensor<[B, S, 64], bf16>, !graph.tensor<[64, 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  %wide = graph.broadcast %bias : !graph.tensor<[128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  %sum = graph.ew<add> %p, %wide : !graph.tensor<[B, S, 128], bf16>, !graph.tensor<[B, S, 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  %gate = graph.ew<sigmoid> %sum : !graph.tensor<[B, S, 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  %y = graph.ew<mul> %sum, %gate : !graph.tensor<[B, S, 128], bf16>, !graph.tensor<[B, S, 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
  graph.return %y : !graph.tensor<[B, S, 128], bf16>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%w: !tile.view<2, bf16, global>, %0: !tile.view<2, bf16, global>, %bias: !tile.view<1, bf16, global>, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[128, 64], [n0, 64], [128], [n0, 128]] grid ["(n0 + 63)//64", 2] {
// CHECK-NEXT:     %1 = tile.program_id 0
// CHECK-NEXT:     %2 = arith.constant 64 : index
// CHECK-NEXT:     %3 = arith.muli %1, %2 : index
// CHECK-NEXT:     %4 = tile.program_id 1
// CHECK-NEXT:     %5 = arith.muli %4, %2 : index
// CHECK-NEXT:     %6 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %7 = tile.full %6 : tensor<64x64xf32>
// CHECK-NEXT:     %8 = arith.constant 0 : index
// CHECK-NEXT:     %9 = tile.load %0[%3, %8] : !tile.view<2, bf16, global> -> tensor<64x64xbf16>
// CHECK-NEXT:     %10 = tile.load %w[%5, %8] : !tile.view<2, bf16, global> -> tensor<64x64xbf16>
// CHECK-NEXT:     %11 = tile.trans %10, [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
// CHECK-NEXT:     %12 = tile.dot %9, %11, %7 : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     %13 = tile.load %bias[%5] : !tile.view<1, bf16, global> -> tensor<64xbf16>
// CHECK-NEXT:     %14 = tile.ew<cast> %13 : tensor<64xbf16> -> tensor<64xf32>
// CHECK-NEXT:     %15 = tile.expand %14, 0 : tensor<64xf32> -> tensor<1x64xf32>
// CHECK-NEXT:     %16 = tile.broadcast %15 : tensor<1x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     %17 = tile.ew<add> %12, %16 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     %18 = tile.ew<sigmoid> %17 : tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     %19 = tile.ew<mul> %17, %18 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
// CHECK-NEXT:     %20 = tile.ew<cast> %19 : tensor<64x64xf32> -> tensor<64x64xbf16>
// CHECK-NEXT:     tile.store %20, %y[%3, %5] : tensor<64x64xbf16>, !tile.view<2, bf16, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[B, S, 64], bf16>, %w: !graph.tensor<[128, 64], bf16>, %bias: !graph.tensor<[128], bf16>) -> (!graph.tensor<[B, S, 128], bf16>) {
// CHECK-NEXT:     %0 = graph.reshape %x : !graph.tensor<[B, S, 64], bf16> -> !graph.tensor<["B*S", 64], bf16>
// CHECK-NEXT:     %y = schedule.launch @f_0 grid <["(B*S + 63)//64", 2]> config <>(%w, %0, %bias) : (!graph.tensor<[128, 64], bf16>, !graph.tensor<["B*S", 64], bf16>, !graph.tensor<[128], bf16>) -> !graph.tensor<["B*S", 128], bf16>
// CHECK-NEXT:     %y_1 = graph.reshape %y : !graph.tensor<["B*S", 128], bf16> -> !graph.tensor<[B, S, 128], bf16>
// CHECK-NEXT:     graph.return %y_1 : !graph.tensor<[B, S, 128], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
