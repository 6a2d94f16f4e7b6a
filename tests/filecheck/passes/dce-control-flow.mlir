// RUN: tessera opt %s -p dce | filecheck %s
// Loops and branches go when nothing inside can be noticed; inside those that stay, dead ops go.
tile.func @f(%x: !tile.view<1, f32, global>, %n: index, %flag: i1) outputs 0 shapes [[N], [], []] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %unused = scf.for %i = %zero to %n step %one iter_args(%s = %zero) -> (index) {
    %next = arith.addi %s, %i : index
    scf.yield %next : index
  }
  scf.if %flag {
    %t = tile.load %x[%n] : !tile.view<1, f32, global> -> tensor<4xf32>
  }
  scf.for %i = %zero to %n step %one {
    %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
    %dead = tile.ew<exp> %t : tensor<4xf32> -> tensor<4xf32>
    tile.store %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %n: index, %flag: i1) outputs 0 shapes [[N], [], []] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     scf.for %i = %zero to %n step %one {
// CHECK-NEXT:       %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:       tile.store %t, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
