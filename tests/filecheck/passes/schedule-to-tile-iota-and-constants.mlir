// RUN: tessera opt %s -p schedule-to-tile --level tile | filecheck %s
// Positions count from the block's offset, numbers fill a tile; casts carry their policy.
graph.func @f() -> (!graph.tensor<[24, 80], i8, saturate>) {
  %y = schedule.region<pointwise> <block = [8, 80]> () -> (!graph.tensor<[24, 80], i8, saturate>) {
    %i = graph.iota 1 : !graph.tensor<[24, 80], i32>
    %c = graph.constant !graph.tensor<[24, 80], i32> = [3]
    %m = graph.ew<mul> %i, %c : !graph.tensor<[24, 80], i32>, !graph.tensor<[24, 80], i32> -> !graph.tensor<[24, 80], i32>
    %n = graph.ew<cast> %m : !graph.tensor<[24, 80], i32> -> !graph.tensor<[24, 80], i8, saturate>
    schedule.yield %n : !graph.tensor<[24, 80], i8, saturate>
  }
  graph.return %y : !graph.tensor<[24, 80], i8, saturate>
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f_0(%y: !tile.view<2, i8, global>) outputs 1 shapes [[24, 80]] grid [3, 1] {
// CHECK-NEXT:     %0 = tile.program_id 0
// CHECK-NEXT:     %1 = arith.constant 8 : index
// CHECK-NEXT:     %2 = arith.muli %0, %1 : index
// CHECK-NEXT:     %3 = tile.program_id 1
// CHECK-NEXT:     %4 = arith.constant 80 : index
// CHECK-NEXT:     %5 = arith.muli %3, %4 : index
// CHECK-NEXT:     %6 = tile.iota %5, 1 : tensor<1x80xi32>
// CHECK-NEXT:     %7 = arith.constant 3 : i32
// CHECK-NEXT:     %8 = tile.full %7 : tensor<1x1xi32>
// CHECK-NEXT:     %9 = tile.full %7 : tensor<1x80xi32>
// CHECK-NEXT:     %10 = tile.ew<mul> %6, %9 : tensor<1x80xi32>, tensor<1x80xi32> -> tensor<1x80xi32>
// CHECK-NEXT:     %11 = tile.ew<cast> %10 policy <saturate> : tensor<1x80xi32> -> tensor<1x80xi8>
// CHECK-NEXT:     %12 = tile.broadcast %11 : tensor<1x80xi8> -> tensor<8x80xi8>
// CHECK-NEXT:     tile.store %12, %y[%2, %5] : tensor<8x80xi8>, !tile.view<2, i8, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT:   graph.func @f() -> (!graph.tensor<[24, 80], i8, saturate>) {
// CHECK-NEXT:     %y = schedule.launch @f_0 grid <[3, 1]> config <block = [8, 80]>() : () -> !graph.tensor<[24, 80], i8, saturate>
// CHECK-NEXT:     graph.return %y : !graph.tensor<[24, 80], i8, saturate>
// CHECK-NEXT:   }
// CHECK-NEXT: }
