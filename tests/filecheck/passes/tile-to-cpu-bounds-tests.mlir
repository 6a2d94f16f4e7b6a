// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Whether all accesses of a nest lie inside, lanes side by side, is tested once in front of it. If not, a careful version
// runs, in which every access tests for itself. That program instances have no negative numbers needs no test.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, N], [M, N]] grid ["(M + 3)//4"] {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %four : index
  %a = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<4x16xf32>
  %b = tile.ew<exp> %a : tensor<4x16xf32> -> tensor<4x16xf32>
  tile.store %b, %y[%row, %zero] : tensor<4x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:            %row = arith.muli
// CHECK-NOT:        sge
// CHECK:            [[END:%\w+]] = arith.addi %row,
// CHECK-NEXT:       [[ROWS:%\w+]] = tile.dim %y, 0
// CHECK-NEXT:       [[FITS:%\w+]] = arith.cmpi sle, [[END]], [[ROWS]]
// CHECK:            [[COLS:%\w+]] = tile.dim %y, 1
// CHECK:            arith.cmpi sle, {{%\w+}}, [[COLS]]
// CHECK:            [[STEP:%\w+]] = tile.stride %y, 1
// CHECK:            arith.cmpi eq, [[STEP]],
// CHECK:            tile.dim %x, 0
// CHECK:            tile.dim %x, 1
// CHECK:            tile.stride %x, 1
// CHECK:            [[INSIDE:%\w+]] = arith.andi
// CHECK-NEXT:       scf.if [[INSIDE]] {
// CHECK:              tile.load %x{{.*}} {inside} : !tile.view<2, f32, global> -> tensor<1x16xf32>
// CHECK:              tile.store {{.*}} {inside} : tensor<1x16xf32>
// CHECK:            } else {
// CHECK-NOT:          inside
// CHECK:              tile.load %x{{.*}} : !tile.view<2, f32, global> -> tensor<1x8xf32>
// CHECK-NOT:          inside
// CHECK:              tile.store {{.*}} : tensor<1x8xf32>
// CHECK-NOT:          inside
// CHECK:          cpu.return
