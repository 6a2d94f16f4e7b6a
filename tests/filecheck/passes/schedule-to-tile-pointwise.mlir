// RUN: tessera opt %s -p schedule-to-tile --level tile | filecheck %s
// A program instance owns one block: it loads, computes and stores at its coordinates in the grid.
graph.func @f(%x: !graph.tensor<["2*S + 1", 96], bf16>, %y: !graph.tensor<["2*S + 1", 96], bf16>) -> (!graph.tensor<["2*S + 1", 96], bf16>) {
  %z = schedule.region<pointwise> <block = [16, 64]> (%a : !graph.tensor<["2*S + 1", 96], bf16> = %x, %b : !graph.tensor<["2*S + 1", 96], bf16> = %y) -> (!graph.tensor<["2*S + 1", 96], bf16>) {
    %sum = graph.ew<add> %a, %b : !graph.tensor<["2*S + 1", 96], bf16>, !graph.tensor<["2*S + 1", 96], bf16> -> !graph.tensor<["2*S + 1", 96], bf16>
    schedule.yield %sum : !graph.tensor<["2*S + 1", 96], bf16>
  }
  graph.return %z : !graph.tensor<["2*S + 1", 96], bf16>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%x: !tile.view<2, bf16, global>, %y: !tile.view<2, bf16, global>, %z: !tile.view<2, bf16, global>) outputs 1 shapes [["2*S + 1", 96], ["2*S + 1", 96], ["2*S + 1", 96]] grid ["S//8 + 1", 2] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = arith.constant 16 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %3 = tile.program_id 1
// CHECK-NEXT:     %4 = arith.constant 64 : index
// CHECK-NEXT:     %5 = arith.muli %3, %4 : index
// CHECK-NEXT:     %6 = tile.load %x[%2, %5] : !tile.view<2, bf16, global> -> tensor<16x64xbf16>
// CHECK-NEXT:     %7 = tile.load %y[%2, %5] : !tile.view<2, bf16, global> -> tensor<16x64xbf16>
// CHECK-NEXT:     %8 = tile.ew<add> %6, %7 : tensor<16x64xbf16>, tensor<16x64xbf16> -> tensor<16x64xbf16>
// CHECK-NEXT:     tile.store %8, %z[%2, %5] : tensor<16x64xbf16>, !tile.view<2, bf16, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<["2*S + 1", 96], bf16>, %y: !graph.tensor<["2*S + 1", 96], bf16>) -> (!graph.tensor<["2*S + 1", 96], bf16>) {
// CHECK-NEXT:     %z = schedule.launch @f_0 grid <["S//8 + 1", 2]> config <block = [16, 64]>(%x, %y) : (!graph.tensor<["2*S + 1", 96], bf16>, !graph.tensor<["2*S + 1", 96], bf16>) -> !graph.tensor<["2*S + 1", 96], bf16>
// CHECK-NEXT:     graph.return %z : !graph.tensor<["2*S + 1", 96], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
