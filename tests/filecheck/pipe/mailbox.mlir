// RUN: tessera opt %s | filecheck %s
// Slots for numbers of programs.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %box = pipe.mailbox : !pipe.mailbox<2>
  %other = pipe.mailbox {k} : !pipe.mailbox<1>
  %turn = pipe.cursor %other : !pipe.mailbox<1> -> !pipe.cursor<1>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     %box = pipe.mailbox : !pipe.mailbox<2>
// CHECK-NEXT:     %other = pipe.mailbox {k} : !pipe.mailbox<1>
// CHECK-NEXT:     %turn = pipe.cursor %other : !pipe.mailbox<1> -> !pipe.cursor<1>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
