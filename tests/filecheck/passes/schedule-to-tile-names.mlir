// RUN: tessera opt %s -p schedule-to-tile --level tile | filecheck %s
// Kernels are named after their function and numbered; a name that is taken is left alone. Several results share a kernel.
graph.func @f_0() {
  graph.return
}
graph.func @f(%a: !graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[4], f32>) {
  %x, %y = schedule.region<pointwise> <block = [4]> (%u : !graph.tensor<[4], f32> = %a) -> (!graph.tensor<[4], f32>, !graph.tensor<[4], f32>) {
    %e = graph.ew<exp> %u : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
    schedule.yield %e, %u : !graph.tensor<[4], f32>, !graph.tensor<[4], f32>
  }
  graph.return %x, %y : !graph.tensor<[4], f32>, !graph.tensor<[4], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f_0() {
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @f_0_2(%a: !tile.view<1, f32, global>, %x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 2 shapes [[4], [4], [4]] grid [1] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = arith.constant 4 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %3 = tile.load %a[%2] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     %4 = tile.ew<exp> %3 : tensor<4xf32> -> tensor<4xf32>
// CHECK-NEXT:     tile.store %4, %x[%2] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.store %3, %y[%2] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%a: !graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[4], f32>) {
// CHECK-NEXT:     %x, %y = schedule.launch @f_0_2 grid <[1]> config <block = [4]>(%a) : (!graph.tensor<[4], f32>) -> (!graph.tensor<[4], f32>, !graph.tensor<[4], f32>)
// CHECK-NEXT:     graph.return %x, %y : !graph.tensor<[4], f32>, !graph.tensor<[4], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
