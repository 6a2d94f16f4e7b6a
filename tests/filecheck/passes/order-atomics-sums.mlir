// RUN: tessera opt %s -p tile-to-nv{warps=1},order-atomics | filecheck %s
// Blocks add floats one after the other: each waits for the one in front, and signals the next. Integers need no order.
tile.func @floats(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[N], [32]] grid [8] {
  %zero = arith.constant 0 : index
  %step = arith.constant 32 : index
  %program = tile.program_id 0
  %at = arith.muli %program, %step : index
  %a = tile.load %x[%at] : !tile.view<1, f32, global> -> tensor<32xf32>
  tile.atomic<sum> %a, %y[%zero] : tensor<32xf32>, !tile.view<1, f32, global>
  tile.return
}
tile.func @numbers(%x: !tile.view<1, i32, global>, %y: !tile.view<1, i32, global>) outputs 0 shapes [[N], [32]] grid [8] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero] : !tile.view<1, i32, global> -> tensor<32xi32>
  tile.atomic<sum> %a, %y[%zero] : tensor<32xi32>, !tile.view<1, i32, global>
  tile.return
}

// CHECK:      nv.func @floats({{.*}}) {{.*}} attributes {counters = 4 : i64}
// CHECK:      %a = tile.load
// CHECK-NEXT: nv.barrier
// CHECK-NEXT: nv.semaphore_wait
// CHECK-NEXT: tile.atomic<sum>
// CHECK-NEXT: nv.semaphore_signal
// CHECK-NEXT: nv.return
// CHECK:      nv.func @numbers
// CHECK-NOT:  counters
// CHECK-NOT:  nv.semaphore
