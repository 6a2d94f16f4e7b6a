// RUN: tessera opt %s -p apply-facts -f "arg0.size[0] = 64" -f "arg1.size[0] = 8" | filecheck %s
// Of a branch that is decided only the taken side is left, and what the other side wanted to know is not asked.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[A], [B]] grid [1] {
  %limit = arith.constant 32 : index
  %a = tile.dim %x, 0 : !tile.view<1, f32, global>
  %large = arith.cmpi sgt, %a, %limit : index
  %n = scf.if %large -> (index) {
    tile.debug_print "large"
    scf.yield %limit : index
  } else {
    %b = tile.dim %y, 0 : !tile.view<1, f32, global>
    scf.yield %b : index
  }
  tile.debug_print "32", %n : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[A], [B]] grid [1] {
// CHECK-NEXT:     %n = arith.constant 32 : index
// CHECK-NEXT:     tile.debug_print "large"
// CHECK-NEXT:     tile.debug_print "32", %n : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.size[0] = 64
// CHECK-NOT: guard
