// RUN: tessera opt %s -p check-indices | filecheck %s
// Indices go through a kernel that asserts that they lie along the axis; functions may raise an error then.
graph.func @f(%x: !graph.tensor<[5, D], f32>, %i: !graph.tensor<[B, S], i32>) -> (!graph.tensor<[B, S, D], f32>) {
  %y = graph.gather %x[%i], [0] : !graph.tensor<[5, D], f32>, !graph.tensor<[B, S], i32> -> !graph.tensor<[B, S, D], f32>
  graph.return %y : !graph.tensor<[B, S, D], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @check_indices_0(%0: !tile.view<2, f32, global>, %1: !tile.view<1, i32, global>, %2: !tile.view<1, i32, global>) outputs 1 shapes [[d0, d1], [n], [n]] grid ["(n + 255)//256"] {
// CHECK-NEXT:     %3 = tile.program_id 0
// CHECK-NEXT:     %4 = arith.constant 256 : index
// CHECK-NEXT:     %5 = arith.muli %3, %4 : index
// CHECK-NEXT:     %6 = tile.load %1[%5] : !tile.view<1, i32, global> -> tensor<256xi32>
// CHECK-NEXT:     %7 = tile.ew<cast> %6 : tensor<256xi32> -> tensor<256xi64>
// CHECK-NEXT:     %8 = arith.constant 0 : index
// CHECK-NEXT:     %9 = arith.index_cast %8 : index to i64
// CHECK-NEXT:     %10 = tile.full %9 : tensor<256xi64>
// CHECK-NEXT:     %11 = tile.ew<ge> %7, %10 : tensor<256xi64>, tensor<256xi64> -> tensor<256xi1>
// CHECK-NEXT:     %12 = tile.dim %0, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     %13 = arith.index_cast %12 : index to i64
// CHECK-NEXT:     %14 = tile.full %13 : tensor<256xi64>
// CHECK-NEXT:     %15 = tile.ew<lt> %7, %14 : tensor<256xi64>, tensor<256xi64> -> tensor<256xi1>
// CHECK-NEXT:     %16 = tile.iota %5, 0 : tensor<256xi64>
// CHECK-NEXT:     %17 = tile.dim %1, 0 : !tile.view<1, i32, global>
// CHECK-NEXT:     %18 = arith.index_cast %17 : index to i64
// CHECK-NEXT:     %19 = tile.full %18 : tensor<256xi64>
// CHECK-NEXT:     %20 = tile.ew<ge> %16, %19 : tensor<256xi64>, tensor<256xi64> -> tensor<256xi1>
// CHECK-NEXT:     %21 = tile.ew<and> %11, %15 : tensor<256xi1>, tensor<256xi1> -> tensor<256xi1>
// CHECK-NEXT:     %22 = tile.ew<or> %21, %20 : tensor<256xi1>, tensor<256xi1> -> tensor<256xi1>
// CHECK-NEXT:     tile.assert %22, "gather: an index is out of range for axis 0 of size 5" {tile.check = "indices"} : tensor<256xi1>
// CHECK-NEXT:     tile.store %6, %2[%5] : tensor<256xi32>, !tile.view<1, i32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[5, D], f32>, %i: !graph.tensor<[B, S], i32>) -> (!graph.tensor<[B, S, D], f32>) effects [io] {
// CHECK-NEXT:     %0 = graph.reshape %i : !graph.tensor<[B, S], i32> -> !graph.tensor<["B*S"], i32>
// CHECK-NEXT:     %1 = graph.call_kernel @check_indices_0(%x, %0) : (!graph.tensor<[5, D], f32>, !graph.tensor<["B*S"], i32>) -> !graph.tensor<["B*S"], i32>
// CHECK-NEXT:     %2 = graph.reshape %1 : !graph.tensor<["B*S"], i32> -> !graph.tensor<[B, S], i32>
// CHECK-NEXT:     %y = graph.gather %x[%2], [0] : !graph.tensor<[5, D], f32>, !graph.tensor<[B, S], i32> -> !graph.tensor<[B, S, D], f32>
// CHECK-NEXT:     graph.return %y : !graph.tensor<[B, S, D], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
