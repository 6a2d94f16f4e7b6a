// RUN: tessera opt %s -p take-host-checks | filecheck %s
// What depends on sizes only is checked before the launch: the assert goes, and the division is known to be safe.
tile.func @f(%x: !tile.view<2, f32, global>, %n: index) outputs 0 shapes [[M, N], []] grid [1] {
  %zero = arith.constant 0 : index
  %rows = tile.dim %x, 0 : !tile.view<2, f32, global>
  %columns = tile.dim %x, 1 : !tile.view<2, f32, global>
  %wide = arith.cmpi sle, %rows, %columns : index
  tile.assert %wide, "needs more columns than rows" : i1
  %positive = arith.cmpi sgt, %n, %zero : index
  tile.assert %positive, "the caller's number stays" : i1
  %safe = arith.divsi %rows, %columns : index
  %unsafe = arith.divsi %rows, %n : index
  %data = tile.load %x[%safe, %unsafe] : !tile.view<2, f32, global> -> tensor<8x8xf32>
  tile.store %data, %x[%zero, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %n: index) outputs 0 shapes [[M, N], []] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %rows = tile.dim %x, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     %columns = tile.dim %x, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %wide = arith.cmpi sle, %rows, %columns : index
// CHECK-NEXT:     %positive = arith.cmpi sgt, %n, %zero : index
// CHECK-NEXT:     tile.assert %positive, "the caller's number stays" : i1
// CHECK-NEXT:     %safe = arith.divsi %rows, %columns {checked} : index
// CHECK-NEXT:     %unsafe = arith.divsi %rows, %n : index
// CHECK-NEXT:     %data = tile.load %x[%safe, %unsafe] : !tile.view<2, f32, global> -> tensor<8x8xf32>
// CHECK-NEXT:     tile.store %data, %x[%zero, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
