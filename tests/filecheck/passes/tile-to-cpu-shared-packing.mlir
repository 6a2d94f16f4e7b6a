// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// A right operand that all program instances along one axis load the same way is packed once for them, for every iteration of the loop
// around it. That axis varies fastest; the other one is the outer.
tile.func @product(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %c: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [M, N]] grid ["(M + 11)//12", "(N + 15)//16"] {
  %zero = arith.constant 0 : index
  %twelve = arith.constant 12 : index
  %sixteen = arith.constant 16 : index
  %i = tile.program_id 0
  %j = tile.program_id 1
  %row = arith.muli %i, %twelve : index
  %col = arith.muli %j, %sixteen : index
  %depth = tile.dim %a, 1 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<12x16xf32>
  %sum = scf.for %k = %zero to %depth step %sixteen iter_args(%acc = %start) -> (tensor<12x16xf32>) {
    %left = tile.load %a[%row, %k] : !tile.view<2, f32, global> -> tensor<12x16xf32>
    %right = tile.load %b[%k, %col] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %next = tile.dot %left, %right, %acc : tensor<12x16xf32>, tensor<16x16xf32>, tensor<12x16xf32> -> tensor<12x16xf32>
    scf.yield %next : tensor<12x16xf32>
  }
  tile.store %sum, %c[%row, %col] : tensor<12x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:          [[DOWN:%\w+]] = cpu.grid 0
// CHECK-NEXT:     [[ACROSS:%\w+]] = cpu.grid 1
// CHECK-NEXT:     cpu.parallel [[ACROSS]], [[DOWN]] once {
// CHECK-NEXT:     ^bb0([[OUTER:%\w+]]: index):
// CHECK:            [[COL:%\w+]] = arith.muli [[OUTER]],
// CHECK:            [[DEPTH:%\w+]] = tile.dim %a, 1
// CHECK:            [[TURNS:%\w+]] = arith.maxsi
// CHECK-NEXT:       [[PANELS:%\w+]] = cpu.reserve [[TURNS]] : !cpu.panels<16x16xf32, 16>
// CHECK-NEXT:       scf.for [[K:%\w+]] = {{%\w+}} to [[DEPTH]] step
// CHECK:              [[TURN:%\w+]] = arith.divsi
// CHECK-NEXT:         cpu.pack %b[[[K]], [[COL]]], [[PANELS]][[[TURN]]] : !tile.view<2, f32, global>, !cpu.panels<16x16xf32, 16>
// CHECK-NEXT:       }
// CHECK-NEXT:       cpu.yield [[PANELS]] : !cpu.panels<16x16xf32, 16>
// CHECK-NEXT:     } do {
// CHECK-NEXT:     ^bb0([[O:%\w+]]: index, [[I:%\w+]]: index, [[SHARED:%\w+]]: !cpu.panels<16x16xf32, 16>):
// CHECK-NOT:        cpu.pack
// CHECK:            [[ROW:%\w+]] = arith.muli [[I]],
// CHECK:            scf.for
// CHECK:              [[NUMBER:%\w+]] = arith.divsi
// CHECK:              scf.for
// CHECK:                cpu.dot {{.*}}, [[SHARED]][[[NUMBER]], {{%\w+}}], {{%\w+}} : !cpu.buffer<6x16xf32>, !cpu.panels<16x16xf32, 16>, tensor<6x16xf32> -> tensor<6x16xf32>
