// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// Tiles that a branch gives go into buffers, which both sides fill; numbers stay values.
tile.func @f(%x: !tile.view<2, f32, global>, %flag: i1, %y: !tile.view<2, f32, global>) outputs 1 shapes [[4, 8], [], [5, 8]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %eight = arith.constant 8 : index
  %from = tile.view %x offset %zero sizes[%four, %eight] strides[%eight, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %a = tile.load %from[%zero, %zero] : !tile.view<2, f32, global> -> tensor<4x8xf32>
  %b, %s, %k = scf.if %flag -> (tensor<4x8xf32>, tensor<4xf32>, index) {
    %c = tile.ew<exp> %a : tensor<4x8xf32> -> tensor<4x8xf32>
    %d = tile.reduce<sum> %c, 1 : tensor<4x8xf32> -> tensor<4xf32>
    scf.yield %c, %d, %zero : tensor<4x8xf32>, tensor<4xf32>, index
  } else {
    %d = tile.reduce<max> %a, 1 : tensor<4x8xf32> -> tensor<4xf32>
    scf.yield %a, %d, %one : tensor<4x8xf32>, tensor<4xf32>, index
  }
  %column = tile.expand %s, 1 : tensor<4xf32> -> tensor<4x1xf32>
  %all = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x8xf32>
  %e = tile.ew<sub> %b, %all : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  tile.store %e, %y[%k, %zero] : tensor<4x8xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:            cpu.buffer : !cpu.buffer<4x8xf32>
// CHECK-NEXT:       [[S:%\w+]] = cpu.buffer : !cpu.buffer<1x4xf32>
// CHECK-NEXT:       [[B:%\w+]] = cpu.buffer : !cpu.buffer<4x8xf32>
// CHECK-NEXT:       %zero = arith.constant
// CHECK:            [[K:%\w+]] = scf.if %flag -> (index) {
// CHECK:              tile.ew<exp>
// CHECK:              tile.reduce<sum>
// CHECK:              cpu.store {{.*}}, [[B]][
// CHECK:              cpu.store {{.*}}, [[S]][
// CHECK-NEXT:         scf.yield %zero : index
// CHECK-NEXT:       } else {
// CHECK:              tile.reduce<max>
// CHECK:              cpu.store {{.*}}, [[B]][
// CHECK:              cpu.store {{.*}}, [[S]][
// CHECK-NEXT:         scf.yield %one : index
// CHECK-NEXT:       }
// CHECK:            cpu.load [[B]]
// CHECK-NEXT:       cpu.load [[S]]
// CHECK:            tile.ew<sub>
// CHECK-NEXT:       [[ROW:%\w+]] = arith.addi [[K]],
// CHECK-NEXT:       tile.store {{%\w+}}, %y[[[ROW]],
