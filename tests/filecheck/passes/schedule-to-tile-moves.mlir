// RUN: tessera opt %s -p graph-to-schedule,schedule-to-tile,canonicalize,cse --level tile | filecheck %s
// Axes of tiles go through memory in steps of their own: a result whose axes were merged is stored as a box.
graph.func @heads(%0: !graph.tensor<[B, 3, S, 8], f32>, %1: !graph.tensor<[B, S, 24], f32>) -> (!graph.tensor<[B, S, 24], f32>) {
  %2 = graph.transpose %0, [0, 2, 1, 3] : !graph.tensor<[B, 3, S, 8], f32> -> !graph.tensor<[B, S, 3, 8], f32>
  %3 = graph.reshape %2 : !graph.tensor<[B, S, 3, 8], f32> -> !graph.tensor<[B, S, 24], f32>
  %4 = graph.ew<add> %3, %1 : !graph.tensor<[B, S, 24], f32>, !graph.tensor<[B, S, 24], f32> -> !graph.tensor<[B, S, 24], f32>
  graph.return %4 : !graph.tensor<[B, S, 24], f32>
}
graph.func @embedding(%0: !graph.tensor<[V, 40], f32>, %1: !graph.tensor<[M], i32>) -> (!graph.tensor<[M, 40], f32>) {
  %2 = graph.gather %0[%1], [0] : !graph.tensor<[V, 40], f32>, !graph.tensor<[M], i32> -> !graph.tensor<[M, 40], f32>
  graph.return %2 : !graph.tensor<[M, 40], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @heads_0(%0: !tile.view<4, f32, global>, %1: !tile.view<3, f32, global>, %2: !tile.view<3, f32, global>) outputs 1 shapes [[B, 3, S, 8], [B, S, 24], [B, S, 24]] grid [B, S, 1, 1] {
// CHECK-NEXT:     %3 = tile.program_id 0
// CHECK-NEXT:     %4 = tile.program_id 1
// CHECK-NEXT:     %5 = tile.program_id 2
// CHECK-NEXT:     %6 = arith.constant 3 : index
// CHECK-NEXT:     %7 = arith.muli %5, %6 : index
// CHECK-NEXT:     %8 = tile.program_id 3
// CHECK-NEXT:     %9 = arith.constant 8 : index
// CHECK-NEXT:     %10 = arith.muli %8, %9 : index
// CHECK-NEXT:     %11 = tile.stride %0, 0 : !tile.view<4, f32, global>
// CHECK-NEXT:     %12 = arith.muli %3, %11 : index
// CHECK-NEXT:     %13 = tile.stride %0, 2 : !tile.view<4, f32, global>
// CHECK-NEXT:     %14 = arith.muli %4, %13 : index
// CHECK-NEXT:     %15 = arith.addi %12, %14 : index
// CHECK-NEXT:     %16 = tile.stride %0, 1 : !tile.view<4, f32, global>
// CHECK-NEXT:     %17 = tile.stride %0, 3 : !tile.view<4, f32, global>
// CHECK-NEXT:     %18 = tile.view %0 offset %15 sizes[%6, %9] strides[%16, %17] : !tile.view<4, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     %19 = tile.load %18[%7, %10] : !tile.view<2, f32, global> -> tensor<3x8xf32>
// CHECK-NEXT:     %20 = tile.stride %1, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %21 = arith.muli %3, %20 : index
// CHECK-NEXT:     %22 = tile.stride %1, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %23 = arith.muli %4, %22 : index
// CHECK-NEXT:     %24 = arith.addi %21, %23 : index
// CHECK-NEXT:     %25 = tile.stride %1, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %26 = arith.muli %25, %9 : index
// CHECK-NEXT:     %27 = tile.view %1 offset %24 sizes[%6, %9] strides[%26, %25] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     %28 = tile.load %27[%7, %10] : !tile.view<2, f32, global> -> tensor<3x8xf32>
// CHECK-NEXT:     %29 = tile.ew<add> %19, %28 : tensor<3x8xf32>, tensor<3x8xf32> -> tensor<3x8xf32>
// CHECK-NEXT:     %30 = tile.stride %2, 0 : !tile.view<3, f32, global>
// CHECK-NEXT:     %31 = arith.muli %3, %30 : index
// CHECK-NEXT:     %32 = tile.stride %2, 1 : !tile.view<3, f32, global>
// CHECK-NEXT:     %33 = arith.muli %4, %32 : index
// CHECK-NEXT:     %34 = arith.addi %31, %33 : index
// CHECK-NEXT:     %35 = tile.stride %2, 2 : !tile.view<3, f32, global>
// CHECK-NEXT:     %36 = arith.muli %35, %9 : index
// CHECK-NEXT:     %37 = tile.view %2 offset %34 sizes[%6, %9] strides[%36, %35] : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK-NEXT:     tile.store %29, %37[%7, %10] : tensor<3x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @heads(%0: !graph.tensor<[B, 3, S, 8], f32>, %1: !graph.tensor<[B, S, 24], f32>) -> (!graph.tensor<[B, S, 24], f32>) {
// CHECK-NEXT:     %2 = schedule.launch @heads_0 grid <[B, S, 1, 1]> config <block = [1, 1, 3, 8]>(%0, %1) : (!graph.tensor<[B, 3, S, 8], f32>, !graph.tensor<[B, S, 24], f32>) -> !graph.tensor<[B, S, 24], f32>
// CHECK-NEXT:     graph.return %2 : !graph.tensor<[B, S, 24], f32>
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @embedding_0(%0: !tile.view<2, f32, global>, %1: !tile.view<1, i32, global>, %2: !tile.view<2, f32, global>) outputs 1 shapes [[V, 40], [M], [M, 40]] grid [M, 1] {
// CHECK-NEXT:     %3 = tile.program_id 0
// CHECK-NEXT:     %4 = tile.program_id 1
// CHECK-NEXT:     %5 = arith.constant 40 : index
// CHECK-NEXT:     %6 = arith.muli %4, %5 : index
// CHECK-NEXT:     %7 = tile.item %1[%3] {tile.open} : !tile.view<1, i32, global> -> i32
// CHECK-NEXT:     %8 = arith.index_cast %7 : i32 to index
// CHECK-NEXT:     %9 = arith.constant 0 : index
// CHECK-NEXT:     %10 = tile.dim %0, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     %11 = arith.cmpi sge, %8, %9 : index
// CHECK-NEXT:     %12 = arith.cmpi slt, %8, %10 : index
// CHECK-NEXT:     %13 = arith.andi %11, %12 : i1
// CHECK-NEXT:     %14 = arith.select %13, %8, %9 : index
// CHECK-NEXT:     %15 = tile.stride %0, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     %16 = arith.muli %14, %15 : index
// CHECK-NEXT:     %17 = tile.stride %0, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %18 = arith.select %13, %5, %9 : index
// CHECK-NEXT:     %19 = tile.view %0 offset %16 sizes[%18] strides[%17] : !tile.view<2, f32, global> -> !tile.view<1, f32, global>
// CHECK-NEXT:     %20 = tile.load %19[%6] {tile.open} : !tile.view<1, f32, global> -> tensor<40xf32>
// CHECK-NEXT:     %21 = tile.stride %2, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     %22 = arith.muli %3, %21 : index
// CHECK-NEXT:     %23 = tile.stride %2, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %24 = tile.view %2 offset %22 sizes[%5] strides[%23] : !tile.view<2, f32, global> -> !tile.view<1, f32, global>
// CHECK-NEXT:     tile.store %20, %24[%6] : tensor<40xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @embedding(%0: !graph.tensor<[V, 40], f32>, %1: !graph.tensor<[M], i32>) -> (!graph.tensor<[M, 40], f32>) {
// CHECK-NEXT:     %2 = schedule.launch @embedding_0 grid <[M, 1]> config <block = [1, 40]>(%0, %1) : (!graph.tensor<[V, 40], f32>, !graph.tensor<[M], i32>) -> !graph.tensor<[M, 40], f32>
// CHECK-NEXT:     graph.return %2 : !graph.tensor<[M, 40], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
