// RUN: tessera opt %s | filecheck %s
// What was begun so far is one group. A group may be empty.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
  pipe.commit
  pipe.commit {k}
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index, %j: index) outputs 0 shapes [[M, N], [], []] grid [1] {
// CHECK-NEXT:     pipe.commit
// CHECK-NEXT:     pipe.commit {k}
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
