// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// A chain of ops is one nest: a loop over steps of a few registers, in which no tile is ever whole. What is left over follows.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[40], [40]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %size = arith.constant 40 : index
  %from = tile.view %x offset %zero sizes[%size] strides[%one] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  %to = tile.view %y offset %zero sizes[%size] strides[%one] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  %a = tile.load %from[%zero] : !tile.view<1, f32, global> -> tensor<40xf32>
  %b = tile.ew<exp> %a : tensor<40xf32> -> tensor<40xf32>
  %c = tile.ew<add> %b, %a : tensor<40xf32>, tensor<40xf32> -> tensor<40xf32>
  tile.store %c, %to[%zero] : tensor<40xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK{LITERAL}:   cpu.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) shapes [[40], [40]] grid [1] {
// CHECK-NEXT:     [[PROGRAMS:%\w+]] = cpu.grid 0
// CHECK:          cpu.parallel {{%\w+}}, [[PROGRAMS]] once {
// CHECK-NEXT:     ^bb0({{%\w+}}: index):
// CHECK-NEXT:       cpu.yield
// CHECK-NEXT:     } do {
// CHECK-NOT:        cpu.buffer
// CHECK:            scf.for
// CHECK:              [[A:%\w+]] = tile.load %from{{.*}} {inside} : !tile.view<1, f32, global> -> tensor<16xf32>
// CHECK-NEXT:         [[B:%\w+]] = tile.ew<exp> [[A]] : tensor<16xf32> -> tensor<16xf32>
// CHECK-NEXT:         [[C:%\w+]] = tile.ew<add> [[B]], [[A]]
// CHECK:              tile.store [[C]], %to{{.*}} {inside} : tensor<16xf32>
// CHECK-NEXT:       }
// CHECK:            tile.load %from{{.*}} -> tensor<8xf32>
// CHECK-NEXT:       tile.ew<exp>
// CHECK-NEXT:       tile.ew<add>
// CHECK:            tile.store {{.*}} : tensor<8xf32>
// CHECK-NEXT:       cpu.yield
// CHECK:          cpu.return
