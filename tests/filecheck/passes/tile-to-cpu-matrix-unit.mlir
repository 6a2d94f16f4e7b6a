// RUN: tessera opt %s -p tile-to-cpu{level=amx} | filecheck %s
// Dots of bf16 by the matrix unit. The left operand has whole lines, with zeros in the gaps, and a multiple of 16 rows;
// of the right one, two rows are interleaved. Strips have 32 rows, and the last 16; one that starts
// from zeros stores its accumulator, one that starts from another dot adds to its buffer.
tile.func @product(%x: !tile.view<2, bf16, global>, %w: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[40, 24], [24, 48], [40, 48]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = arith.constant 40 : index
  %depth = arith.constant 24 : index
  %cols = arith.constant 48 : index
  %from = tile.view %x offset %zero sizes[%rows, %depth] strides[%depth, %one] : !tile.view<2, bf16, global> -> !tile.view<2, bf16, global>
  %to = tile.view %y offset %zero sizes[%rows, %cols] strides[%cols, %one] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %left = tile.load %from[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<40x24xbf16>
  %right = tile.load %w[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<24x48xbf16>
  %start = tile.full %nothing : tensor<40x48xf32>
  %sum = tile.dot %left, %right, %start : tensor<40x24xbf16>, tensor<24x48xbf16>, tensor<40x48xf32> -> tensor<40x48xf32>
  %again = tile.dot %left, %right, %sum : tensor<40x24xbf16>, tensor<24x48xbf16>, tensor<40x48xf32> -> tensor<40x48xf32>
  tile.store %again, %to[%zero, %zero] : tensor<40x48xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:            cpu.pack %w{{.*}} !cpu.panels<24x48xbf16, 16, 2>
// CHECK:          } do {
// CHECK-NEXT:     ^bb0({{%\w+}}: index, {{%\w+}}: index, [[W:%\w+]]: !cpu.panels<24x48xbf16, 16, 2>
// CHECK-NEXT:       [[LEFT:%\w+]] = cpu.buffer : !cpu.buffer<48x24xbf16>
// CHECK-NEXT:       cpu.clear [[LEFT]]
// CHECK-NEXT:       [[SUM:%\w+]] = cpu.buffer : !cpu.buffer<48x48xf32>
// CHECK:            scf.for
// CHECK:              cpu.store {{%\w+}}, [[LEFT]]
// CHECK:            cpu.matmul [[LEFT]], [[W]]{{.*}}, [[SUM]]{{.*}} size [32, 48]
// CHECK:            cpu.matmul [[LEFT]], [[W]]{{.*}}, [[SUM]]{{.*}} size [16, 48]
// CHECK-NOT:        cpu.store
// CHECK:            cpu.matmul added [[LEFT]], {{.*}}, [[SUM]]{{.*}} size [32, 48]
// CHECK:            cpu.matmul added [[LEFT]], {{.*}}, [[SUM]]{{.*}} size [16, 48]
// CHECK:            scf.for
// CHECK:              cpu.load [[SUM]]
// CHECK:              tile.store
