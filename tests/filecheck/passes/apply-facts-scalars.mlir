// RUN: tessera opt %s -p apply-facts -f "arg0 = true" -f "arg1 = 3" -f "arg2 = 0.125" -f "arg3 = 7" -f "arg4 = 8" | filecheck %s
// Scalar arguments become constants of their type; one that is not used needs no guard. Unsigned ones stay: there are
// no unsigned constants.
tile.func @f(%flag: i1, %n: index, %scale: bf16, %unused: i32, %byte: ui8) outputs 0 shapes [[], [], [], [], []] grid [1] {
  scf.if %flag {
    tile.debug_print "n", %n : index
  }
  %t = tile.full %scale : tensor<4xbf16>
  tile.debug_print "t", %t, %byte : tensor<4xbf16>, ui8
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%flag: i1, %n: index, %scale: bf16, %unused: i32, %byte: ui8) outputs 0 shapes [[], [], [], [], []] grid [1] {
// CHECK-NEXT:     %n_1 = arith.constant 3 : index
// CHECK-NEXT:     %scale_1 = arith.constant 1.250000e-01 : bf16
// CHECK-NEXT:     tile.debug_print "n", %n_1 : index
// CHECK-NEXT:     %t = tile.full %scale_1 : tensor<4xbf16>
// CHECK-NEXT:     tile.debug_print "t", %t, %byte : tensor<4xbf16>, ui8
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0 = true
// CHECK-NEXT: // guard: arg1 = 3
// CHECK-NEXT: // guard: arg2 = 0.125
// CHECK-NOT: guard
