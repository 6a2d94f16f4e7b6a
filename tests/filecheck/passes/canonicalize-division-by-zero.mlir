// RUN: tessera opt %s -p canonicalize | filecheck %s
// A division by zero is not computed: it fails when and if it runs.
tile.func @f() outputs 0 shapes [] grid [1] {
  %a = arith.constant 12 : index
  %zero = arith.constant 0 : index
  %q = arith.divsi %a, %zero : index
  %r = arith.remsi %a, %zero : index
  tile.debug_print "never", %q, %r : index, index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   tile.func @f() outputs 0 shapes [] grid [1] {
// CHECK-NEXT:     %a = arith.constant 12 : index
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %q = arith.divsi %a, %zero : index
// CHECK-NEXT:     %r = arith.remsi %a, %zero : index
// CHECK-NEXT:     tile.debug_print "never", %q, %r : index, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
