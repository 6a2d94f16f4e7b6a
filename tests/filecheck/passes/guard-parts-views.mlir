// RUN: tessera opt %s -p guard-parts | filecheck %s
// A part of a view sees nothing where its index is out of range, and says so.
tile.func @f(%x: !tile.view<2, f32, global>, %n: index) outputs 0 shapes [[N, M], []] grid [1] {
  %zero = arith.constant 0 : index
  %stride = tile.stride %x, 0 : !tile.view<2, f32, global>
  %offset = arith.muli %n, %stride : index
  %size = tile.dim %x, 1 : !tile.view<2, f32, global>
  %step = tile.stride %x, 1 : !tile.view<2, f32, global>
  %row = tile.view %x offset %offset sizes [%size] strides [%step] : !tile.view<2, f32, global> -> !tile.view<1, f32, global>
  %a = tile.load %row[%zero] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}

// CHECK:      tile.func @f(%[[X:.*]]: !tile.view<2, f32, global>, %[[N:.*]]: index)
// CHECK:      %[[SIZE:.*]] = tile.dim %[[X]], 1
// CHECK:      %[[ROWS:.*]] = tile.dim %[[X]], 0
// CHECK-NEXT: %[[INSIDE:.*]] = arith.cmpi ult, %[[N]], %[[ROWS]] : index
// CHECK-NEXT: %[[NONE:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[SEEN:.*]] = arith.select %[[INSIDE]], %[[SIZE]], %[[NONE]] : index
// CHECK-NEXT: tile.assert %[[INSIDE]], "view has an index out of range, along axis 0" : i1
// CHECK-NEXT: tile.view %[[X]] offset %{{.*}} sizes[%[[SEEN]]] strides[%{{.*}}] {tile.part}
