// RUN: tessera opt %s -p canonicalize | filecheck %s
// Scalars that are known are computed, wrapping as their type does.
tile.func @f() outputs 0 shapes [] grid [1] {
  %a = arith.constant 12 : index
  %b = arith.constant 5 : index
  %sum = arith.addi %a, %b : index
  %product = arith.muli %sum, %b : index
  %quotient = arith.divsi %product, %a : index
  %less = arith.cmpi slt, %quotient, %b : index
  %most = arith.select %less, %sum, %product : index
  tile.debug_print "index", %most : index
  %large = arith.constant 127 : i8
  %one = arith.constant 1 : i8
  %wrapped = arith.addi %large, %one : i8
  tile.debug_print "i8", %wrapped : i8
  %half = arith.constant 0.5 : f32
  %doubled = arith.addf %half, %half : f32
  tile.debug_print "f32", %doubled : f32
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   tile.func @f() outputs 0 shapes [] grid [1] {
// CHECK-NEXT:     %product = arith.constant 85 : index
// CHECK-NEXT:     tile.debug_print "index", %product : index
// CHECK-NEXT:     %wrapped = arith.constant -128 : i8
// CHECK-NEXT:     tile.debug_print "i8", %wrapped : i8
// CHECK-NEXT:     %doubled = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:     tile.debug_print "f32", %doubled : f32
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
