// RUN: tessera opt %s -p "tile-to-cpu{level=avx2 fuse=false}" | filecheck %s
// Without fusion every op that is not free has a nest of its own, and hands its tile on in a buffer.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[16], [16]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %size = arith.constant 16 : index
  %from = tile.view %x offset %zero sizes[%size] strides[%one] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  %to = tile.view %y offset %zero sizes[%size] strides[%one] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  %a = tile.load %from[%zero] : !tile.view<1, f32, global> -> tensor<16xf32>
  %b = tile.ew<exp> %a : tensor<16xf32> -> tensor<16xf32>
  %c = tile.ew<log> %b : tensor<16xf32> -> tensor<16xf32>
  tile.store %c, %to[%zero] : tensor<16xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:            [[C:%\w+]] = cpu.buffer
// CHECK-NEXT:       [[B:%\w+]] = cpu.buffer
// CHECK:            tile.load %from
// CHECK-NEXT:       tile.ew<exp>
// CHECK-NEXT:       cpu.store {{%\w+}}, [[B]]
// CHECK:            cpu.load [[B]]
// CHECK-NEXT:       tile.ew<log>
// CHECK-NEXT:       cpu.store {{%\w+}}, [[C]]
// CHECK:            cpu.load [[C]]
// CHECK-NEXT:       tile.store
