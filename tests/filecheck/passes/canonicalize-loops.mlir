// RUN: tessera opt %s -p canonicalize | filecheck %s
// A loop that runs zero times gives what it started with; one that may run stays.
tile.func @f(%n: index) outputs 0 shapes [[]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %five = arith.constant 5 : index
  %backward = scf.for %i = %five to %one step %one iter_args(%s = %n) -> (index) {
    tile.debug_print "never", %i : index
    scf.yield %i : index
  }
  %nowhere = scf.for %i = %n to %n step %one iter_args(%s = %five) -> (index) {
    scf.yield %i : index
  }
  %some = scf.for %i = %zero to %five step %one iter_args(%s = %zero) -> (index) {
    %next = arith.addi %s, %i : index
    scf.yield %next : index
  }
  tile.debug_print "n, 5, loop", %backward, %nowhere, %some : index, index, index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%n: index) outputs 0 shapes [[]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     %five = arith.constant 5 : index
// CHECK-NEXT:     %some = scf.for %i = %zero to %five step %one iter_args(%s = %zero) -> (index) {
// CHECK-NEXT:       %next = arith.addi %s, %i : index
// CHECK-NEXT:       scf.yield %next : index
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.debug_print "n, 5, loop", %n, %five, %some : index, index, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
