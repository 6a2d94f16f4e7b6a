// RUN: tessera opt %s -p canonicalize | filecheck %s
// What the signature says is checked on every call: constants fold, and equal sizes are asked of the first argument.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<1, f32, global>) outputs 1 shapes [[64, N], [N, "2*K"], ["2*K"]] grid [1] {
  %constant = tile.dim %x, 0 : !tile.view<2, f32, global>
  %first = tile.dim %x, 1 : !tile.view<2, f32, global>
  %again = tile.dim %y, 0 : !tile.view<2, f32, global>
  %expression = tile.dim %z, 0 : !tile.view<1, f32, global>
  tile.debug_print "64, N, N, 2*K", %constant, %first, %again, %expression : index, index, index, index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<1, f32, global>) outputs 1 shapes [[64, N], [N, "2*K"], ["2*K"]] grid [1] {
// CHECK-NEXT:     %constant = arith.constant 64 : index
// CHECK-NEXT:     %first = tile.dim %x, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %again = tile.dim %x, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     %expression = tile.dim %y, 1 : !tile.view<2, f32, global>
// CHECK-NEXT:     tile.debug_print "64, N, N, 2*K", %constant, %first, %again, %expression : index, index, index, index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
