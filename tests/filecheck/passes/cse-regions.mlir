// RUN: tessera opt %s -p cse | filecheck %s
// Inside a loop or branch what the code around it computed is there already; one branch knows nothing of the other.
tile.func @f(%x: !tile.view<1, f32, global>, %n: index, %flag: i1) outputs 0 shapes [[N], [], []] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %double = arith.addi %n, %n : index
  scf.for %i = %zero to %n step %one {
    %again = arith.addi %n, %n : index
    tile.debug_print "outer", %again : index
  }
  scf.if %flag {
    %square = arith.muli %n, %n : index
    tile.debug_print "square", %square : index
  } else {
    %square = arith.muli %n, %n : index
    tile.debug_print "square", %square : index
  }
  %after = arith.muli %n, %n : index
  tile.debug_print "after", %after, %double : index, index
  tile.return
}
tile.func @loop_that_writes(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<4xf32>
  scf.for %i = %zero to %n step %one {
    tile.store %a, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
  }
  %b = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<4xf32>
  tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %n: index, %flag: i1) outputs 0 shapes [[N], [], []] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     %double = arith.addi %n, %n : index
// CHECK-NEXT:     scf.for %i = %zero to %n step %one {
// CHECK-NEXT:       tile.debug_print "outer", %double : index
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.if %flag {
// CHECK-NEXT:       %square = arith.muli %n, %n : index
// CHECK-NEXT:       tile.debug_print "square", %square : index
// CHECK-NEXT:     } else {
// CHECK-NEXT:       %square_1 = arith.muli %n, %n : index
// CHECK-NEXT:       tile.debug_print "square", %square_1 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     %after = arith.muli %n, %n : index
// CHECK-NEXT:     tile.debug_print "after", %after, %double : index, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT{LITERAL}:   tile.func @loop_that_writes(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     scf.for %i = %zero to %n step %one {
// CHECK-NEXT:       tile.store %a, %x[%i] : tensor<4xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     }
// CHECK-NEXT:     %b = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<4xf32>
// CHECK-NEXT:     tile.debug_print "both", %a, %b : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
