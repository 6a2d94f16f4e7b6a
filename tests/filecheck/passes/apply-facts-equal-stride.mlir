// RUN: tessera opt %s -p apply-facts -f "arg1.size[0] = arg0.stride[0]" | filecheck %s
// A size may equal a stride: what is asked instead is the stride, not the size of that axis.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[M, N], [K]] grid [1] {
  %k = tile.dim %y, 0 : !tile.view<1, f32, global>
  tile.debug_print "k", %k : index
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[M, N], [K]] grid [1] {
// CHECK-NEXT:     %k = tile.stride %x, 0 : !tile.view<2, f32, global>
// CHECK-NEXT:     tile.debug_print "k", %k : index
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: // guard: arg0.stride[0] = arg1.size[0]
// CHECK-NOT: guard
