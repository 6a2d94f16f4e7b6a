// RUN: tessera opt %s -p "graph-to-schedule{instances=264}" | filecheck %s
// Few program instances would fold the rows: parts of them are folded first.
graph.func @main(%x: !graph.tensor<[16384, 512], bf16>) -> (!graph.tensor<[512], bf16>) {
  %sums = graph.reduce<sum> %x, [0] : !graph.tensor<[16384, 512], bf16> -> !graph.tensor<[512], bf16>
  graph.return %sums : !graph.tensor<[512], bf16>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @main(%x: !graph.tensor<[16384, 512], bf16>) -> (!graph.tensor<[512], bf16>) {
// CHECK-NEXT:     %sums = schedule.region<rows> <block = [1, 64, 128]> (%x_1 : !graph.tensor<[16384, 512], bf16> = %x) -> (!graph.tensor<[128, 512], f32>) {
// CHECK-NEXT:       %sums_1 = graph.ew<cast> %x_1 : !graph.tensor<[16384, 512], bf16> -> !graph.tensor<[16384, 512], f32>
// CHECK-NEXT:       %sums_2 = graph.reshape %sums_1 : !graph.tensor<[16384, 512], f32> -> !graph.tensor<[128, 128, 512], f32>
// CHECK-NEXT:       %sums_3 = graph.reduce<sum> %sums_2, [1] : !graph.tensor<[128, 128, 512], f32> -> !graph.tensor<[128, 512], f32>
// CHECK-NEXT:       schedule.yield %sums_3 : !graph.tensor<[128, 512], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %sums_1 = schedule.region<rows> <block = [64, 128]> (%sums_2 : !graph.tensor<[128, 512], f32> = %sums) -> (!graph.tensor<[512], bf16>) {
// CHECK-NEXT:       %sums_3 = graph.reduce<sum> %sums_2, [0] : !graph.tensor<[128, 512], f32> -> !graph.tensor<[512], f32>
// CHECK-NEXT:       %sums_4 = graph.ew<cast> %sums_3 : !graph.tensor<[512], f32> -> !graph.tensor<[512], bf16>
// CHECK-NEXT:       schedule.yield %sums_4 : !graph.tensor<[512], bf16>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %sums_1 : !graph.tensor<[512], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
