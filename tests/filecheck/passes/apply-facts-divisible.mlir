// RUN: tessera opt %s -p apply-facts -f "arg0.size[0] % 32 = 0" -f "arg0.stride[0] % 8 = 0" | filecheck %s
// What divides a size divides its multiples and sums: the remainder is 0, the rest of the loop is not needed.
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  %zero = arith.constant 0 : index
  %sixteen = arith.constant 16 : index
  %n = tile.dim %x, 0 : !tile.view<1, f32, global>
  %rest = arith.remsi %n, %sixteen : index
  %whole = arith.cmpi eq, %rest, %zero : index
  scf.if %whole {
    tile.debug_print "no tail"
  } else {
    tile.debug_print "tail", %rest : index
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
// CHECK-NEXT:     tile.debug_print "no tail"
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.size[0] % 32 = 0
// CHECK-NOT: guard
