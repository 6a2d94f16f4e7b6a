// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Packing once for all program instances repeats the loops around a load; numbers that decide its address stay in the loop that
// they were in.
tile.func @product(%a: !tile.view<2, f32, global>, %b: !tile.view<2, f32, global>, %c: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [M, N]] grid ["(M + 11)//12", "(N + 15)//16"] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %twelve = arith.constant 12 : index
  %sixteen = arith.constant 16 : index
  %i = tile.program_id 0
  %j = tile.program_id 1
  %row = arith.muli %i, %twelve : index
  %col = arith.muli %j, %sixteen : index
  %depth = tile.dim %a, 1 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<12x16xf32>
  %sum = scf.for %k = %zero to %depth step %one iter_args(%acc = %start) -> (tensor<12x16xf32>) {
    %first = arith.muli %k, %two : index
    %inner = scf.for %l = %zero to %two step %one iter_args(%some = %acc) -> (tensor<12x16xf32>) {
      %number = arith.addi %first, %l : index
      %at = arith.muli %number, %sixteen : index
      %left = tile.load %a[%row, %at] : !tile.view<2, f32, global> -> tensor<12x16xf32>
      %right = tile.load %b[%at, %col] : !tile.view<2, f32, global> -> tensor<16x16xf32>
      %next = tile.dot %left, %right, %some : tensor<12x16xf32>, tensor<16x16xf32>, tensor<12x16xf32> -> tensor<12x16xf32>
      scf.yield %next : tensor<12x16xf32>
    }
    scf.yield %inner : tensor<12x16xf32>
  }
  tile.store %sum, %c[%row, %col] : tensor<12x16xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:          cpu.parallel {{%\w+}}, {{%\w+}} once {
// CHECK:            [[PANELS:%\w+]] = cpu.reserve {{%\w+}} : !cpu.panels<16x16xf32, 16>
// CHECK-NEXT:       scf.for [[K:%\w+]] = %zero to %depth step %one {
// CHECK-NEXT:         %first = arith.muli [[K]], %two : index
// CHECK-NEXT:         scf.for [[L:%\w+]] = %zero to %two step %one {
// CHECK-NEXT:           %number = arith.addi %first, [[L]] : index
// CHECK-NEXT:           %at = arith.muli %number, %sixteen : index
// CHECK:                cpu.pack %b[%at, %col], [[PANELS]][{{%\w+}}] : !tile.view<2, f32, global>, !cpu.panels<16x16xf32, 16>
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:       cpu.yield [[PANELS]] : !cpu.panels<16x16xf32, 16>
