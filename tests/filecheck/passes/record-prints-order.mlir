// RUN: tessera opt %s -p record-prints | filecheck %s
// Prints become records in their order, and stores that fill them. Positions and flags are whole numbers; a breakpoint stays.
tile.func @f(%n: index, %h: f32, %b: i1) outputs 0 shapes [[], [], []] grid [1, 2] {
  %t = tile.full %h : tensor<2x4xf32>
  %u = tile.full %h : tensor<f32>
  tile.debug_print "tiles", %t, %u : tensor<2x4xf32>, tensor<f32>
  scf.if %b {
    tile.debug_print "numbers", %n, %h, %b : index, f32, i1
  }
  tile.debug_print "stop", %t {tile.breakpoint} : tensor<2x4xf32>
  tile.return
}

// CHECK:      tile.func @f(%[[N:.*]]: index, %[[H:.*]]: f32, %[[B:.*]]: i1)
// CHECK-NEXT: %[[I:.*]] = tile.program_id 0
// CHECK-NEXT: %[[J:.*]] = tile.program_id 1
// CHECK-NEXT: %[[T:.*]] = tile.full %[[H]] : tensor<2x4xf32>
// CHECK-NEXT: %[[U:.*]] = tile.full %[[H]] : tensor<f32>
// CHECK-NEXT: %[[V:.*]] = tile.expand %[[U]], 0 : tensor<f32> -> tensor<1xf32>
// CHECK-NEXT: %[[A:.*]], %[[C:.*]] = tile.print_record 0 "tiles" at[%[[I]], %[[J]]] [tensor<2x4xf32>, tensor<f32>] : !tile.view<2, f32, global>, !tile.view<1, f32, global>
// CHECK:      tile.store %[[T]], %[[A]][%{{.*}}, %{{.*}}] {tile.open} : tensor<2x4xf32>
// CHECK:      tile.store %[[V]], %[[C]][%{{.*}}] {tile.open} : tensor<1xf32>
// CHECK:      scf.if %[[B]] {
// CHECK-NEXT:   %[[P:.*]] = arith.index_cast %[[N]] : index to i64
// CHECK-NEXT:   tile.full %[[P]] : tensor<1xi64>
// CHECK-NEXT:   tile.full %[[H]] : tensor<1xf32>
// CHECK:        arith.select %[[B]]
// CHECK:        tile.print_record 1 "numbers" at[%[[I]], %[[J]]] [tensor<i64>, tensor<f32>, tensor<i64>]
// CHECK:      tile.debug_print "stop", %[[T]] {tile.breakpoint} : tensor<2x4xf32>
