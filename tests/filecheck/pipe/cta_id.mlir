// RUN: tessera opt %s | filecheck %s
// A function that persistent CTAs run.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
  %one = pipe.cta_id
  %same = pipe.cta_id {k}
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
// CHECK-NEXT:     %one = pipe.cta_id
// CHECK-NEXT:     %same = pipe.cta_id {k}
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
