// RUN: tessera opt %s | filecheck %s
// Waits until no more groups than this are under way.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  pipe.wait 0
  pipe.wait 3 {k}
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
// CHECK-NEXT:     pipe.wait 0
// CHECK-NEXT:     pipe.wait 3 {k}
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
