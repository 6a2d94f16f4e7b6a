// RUN: tessera opt %s -p canonicalize | filecheck %s
// The sizes and strides of a view made inside are the values it was made with.
tile.func @f(%x: !tile.view<2, f32, global>, %n: index, %m: index, %s: index, %t: index) outputs 0 shapes [[M, N], [], [], [], []] grid [1] {
  %zero = arith.constant 0 : index
  %v = tile.view %x offset %zero sizes [%n, %m] strides [%s, %t] : !tile.view<2, f32, global> -> !tile.view<2, f32, global>
  %size = tile.dim %v, 1 : !tile.view<2, f32, global>
  %step = tile.stride %v, 0 : !tile.view<2, f32, global>
  tile.debug_print "m, s", %size, %step : index, index
  %own = tile.stride %x, 0 : !tile.view<2, f32, global>
  tile.debug_print "not known", %own : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %n: index, %m: index, %s: index, %t: index) outputs 0 shapes [[M, N], [], [], [], []] grid [1] {
// CHECK-NEXT:     tile.debug_print "m, s", %m, %s : index, index
// CHECK-NEXT:     %own = tile.stride %x, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     tile.debug_print "not known", %own : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
