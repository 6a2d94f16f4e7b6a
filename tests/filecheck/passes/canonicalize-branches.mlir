// RUN: tessera opt %s -p canonicalize | filecheck %s
// A branch whose condition is known is replaced by what it does and gives.
tile.func @f(%flag: i1) outputs 0 shapes [[]] grid [1] {
  %yes = arith.constant true
  %a = arith.constant 1 : index
  %b = arith.constant 2 : index
  %taken = scf.if %yes -> (index) {
    tile.debug_print "taken"
    scf.yield %a : index
  } else {
    tile.debug_print "not taken"
    scf.yield %b : index
  }
  %less = arith.cmpi slt, %b, %a : index
  scf.if %less {
    tile.debug_print "never"
  }
  scf.if %flag {
    scf.if %yes {
      tile.debug_print "inner"
    }
  }
  %open = scf.if %flag -> (index) {
    scf.yield %taken : index
  } else {
    scf.yield %b : index
  }
  tile.debug_print "open", %open : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%flag: i1) outputs 0 shapes [[]] grid [1] {
// CHECK-NEXT:     %a = arith.constant 1 : index
// CHECK-NEXT:     %b = arith.constant 2 : index
// CHECK-NEXT:     tile.debug_print "taken"
// CHECK-NEXT:     scf.if %flag {
// CHECK-NEXT:       tile.debug_print "inner"
// CHECK-NEXT:     }
// CHECK-NEXT:     %open = scf.if %flag -> (index) {
// CHECK-NEXT:       scf.yield %a : index
// CHECK-NEXT:     } else {
// CHECK-NEXT:       scf.yield %b : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.debug_print "open", %open : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
