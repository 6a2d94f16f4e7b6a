// RUN: tessera opt %s -p "instrument-checks{nan=false}" | filecheck %s
// An access starts inside its view, or the view is empty.
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  %a = tile.load %x[%n] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.return
}

// CHECK:      tile.func @f(%[[X:.*]]: !tile.view<1, f32, global>, %[[N:.*]]: index)
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[SIZE:.*]] = tile.dim %[[X]], 0
// CHECK:      %[[EMPTY:.*]] = arith.cmpi eq, %[[SIZE]], %[[ZERO]] : index
// CHECK:      arith.cmpi sge, %[[N]], %[[ZERO]] : index
// CHECK-NEXT: arith.cmpi slt, %[[N]], %[[SIZE]] : index
// CHECK:      tile.assert %{{.*}}, "tile.load starts outside its view, along axis 0" : i1
// CHECK-NEXT: tile.load
