// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// What a loop carries lives in one buffer. A sum is rewritten where it is. Values that are swapped are copied first. The
// left operand of a dot, all of whose columns are needed, is not written over before the dot is done.
tile.func @sum(%x: !tile.view<1, f32, global>, %n: index, %y: !tile.view<1, f32, global>) outputs 1 shapes [[8], [], [8]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %from = tile.view %x offset %zero sizes[%eight] strides[%one] : !tile.view<1, f32, global> -> !tile.view<1, f32, global>
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<8xf32>
  %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %start) -> (tensor<8xf32>) {
    %a = tile.load %from[%zero] : !tile.view<1, f32, global> -> tensor<8xf32>
    %next = tile.ew<add> %acc, %a : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  tile.store %sum, %y[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.return
}
tile.func @swap(%n: index, %u: f32, %v: f32, %y: !tile.view<1, f32, global>) outputs 1 shapes [[], [], [], [8]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = tile.full %u : tensor<8xf32>
  %b = tile.full %v : tensor<8xf32>
  %c, %d = scf.for %i = %zero to %n step %one iter_args(%p = %a, %q = %b) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %q, %p : tensor<8xf32>, tensor<8xf32>
  }
  tile.store %c, %y[%zero] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.return
}
tile.func @powers(%n: index, %u: f32, %w: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[], [], [24, 24], [4, 24]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = tile.full %u : tensor<4x24xf32>
  %b = scf.for %i = %zero to %n step %one iter_args(%p = %a) -> (tensor<4x24xf32>) {
    %right = tile.load %w[%zero, %zero] : !tile.view<2, f32, global> -> tensor<24x24xf32>
    %q = tile.dot %p, %right, %a : tensor<4x24xf32>, tensor<24x24xf32>, tensor<4x24xf32> -> tensor<4x24xf32>
    scf.yield %q : tensor<4x24xf32>
  }
  tile.store %b, %y[%zero, %zero] : tensor<4x24xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK:          cpu.func @sum
// CHECK:            [[ACC:%\w+]] = cpu.buffer : !cpu.buffer<1x8xf32>
// CHECK-NOT:        cpu.buffer
// CHECK:            cpu.store {{%\w+}}, [[ACC]]
// CHECK-NEXT:       scf.for {{%\w+}} = %zero to %n step %one {
// CHECK:              [[OLD:%\w+]] = cpu.load [[ACC]]
// CHECK:              [[NEW:%\w+]] = tile.ew<add> [[OLD]],
// CHECK-NEXT:         cpu.store [[NEW]], [[ACC]]
// CHECK-NEXT:       }
// CHECK:          cpu.func @swap
// CHECK:            [[P:%\w+]] = cpu.buffer
// CHECK-NEXT:       [[Q:%\w+]] = cpu.buffer
// CHECK-NEXT:       [[R:%\w+]] = cpu.buffer
// CHECK-NEXT:       [[S:%\w+]] = cpu.buffer
// CHECK:            scf.for
// CHECK:              [[FIRST:%\w+]] = cpu.load [[R]]
// CHECK-NEXT:         cpu.store [[FIRST]], [[Q]]
// CHECK:              [[SECOND:%\w+]] = cpu.load [[S]]
// CHECK-NEXT:         cpu.store [[SECOND]], [[P]]
// CHECK:              [[THIRD:%\w+]] = cpu.load [[Q]]
// CHECK-NEXT:         cpu.store [[THIRD]], [[S]]
// CHECK:              [[FOURTH:%\w+]] = cpu.load [[P]]
// CHECK-NEXT:         cpu.store [[FOURTH]], [[R]]
// CHECK:          cpu.func @powers
// CHECK:            [[NEXT:%\w+]] = cpu.buffer
// CHECK-NEXT:       [[NOW:%\w+]] = cpu.buffer
// CHECK:            scf.for {{%\w+}} = %zero{{.*}} to %n
// CHECK:              cpu.dot [[NOW]]
// CHECK-NEXT:         cpu.store {{%\w+}}, [[NEXT]]
// CHECK:              cpu.dot [[NOW]]
// CHECK-NEXT:         cpu.store {{%\w+}}, [[NEXT]]
// CHECK:              cpu.load [[NEXT]]
// CHECK-NEXT:         cpu.store {{%\w+}}, [[NOW]]
