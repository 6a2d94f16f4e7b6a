// RUN: tessera opt %s -p canonicalize | filecheck %s
// Neutral and absorbing elements, and ops on a value and itself.
tile.func @f(%x: index, %flag: i1) outputs 0 shapes [[], []] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %yes = arith.constant true
  %no = arith.constant false
  %add = arith.addi %x, %zero : index
  %mul = arith.muli %one, %x : index
  %sub = arith.subi %x, %zero : index
  %div = arith.divsi %x, %one : index
  %min = arith.minsi %x, %x : index
  %or = arith.ori %x, %x : index
  tile.debug_print "all are x", %add, %mul, %sub, %div, %min, %or : index, index, index, index, index, index
  %nothing = arith.muli %x, %zero : index
  %difference = arith.subi %x, %x : index
  %rest = arith.remsi %x, %one : index
  tile.debug_print "all are 0", %nothing, %difference, %rest : index, index, index
  %equal = arith.cmpi eq, %x, %x : index
  %less = arith.cmpi slt, %x, %x : index
  %and = arith.andi %flag, %no : i1
  %either = arith.ori %flag, %yes : i1
  tile.debug_print "true, false, false, true", %equal, %less, %and, %either : i1, i1, i1, i1
  %same = arith.select %flag, %x, %x : index
  %first = arith.select %yes, %x, %zero : index
  %second = arith.select %no, %zero, %x : index
  tile.debug_print "all are x", %same, %first, %second : index, index, index
  %unknown = arith.subi %zero, %x : index
  tile.debug_print "stays", %unknown : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: index, %flag: i1) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     tile.debug_print "all are x", %x, %x, %x, %x, %x, %x : index, index, index, index, index, index
// CHECK-NEXT:     %nothing = arith.constant 0 : index
// CHECK-NEXT:     %difference = arith.constant 0 : index
// CHECK-NEXT:     %rest = arith.constant 0 : index
// CHECK-NEXT:     tile.debug_print "all are 0", %nothing, %difference, %rest : index, index, index
// CHECK-NEXT:     %equal = arith.constant true
// CHECK-NEXT:     %less = arith.constant false
// CHECK-NEXT:     %and = arith.constant false
// CHECK-NEXT:     %either = arith.constant true
// CHECK-NEXT:     tile.debug_print "true, false, false, true", %equal, %less, %and, %either : i1, i1, i1, i1
// CHECK-NEXT:     tile.debug_print "all are x", %x, %x, %x : index, index, index
// CHECK-NEXT:     %unknown = arith.subi %zero, %x : index
// CHECK-NEXT:     tile.debug_print "stays", %unknown : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
