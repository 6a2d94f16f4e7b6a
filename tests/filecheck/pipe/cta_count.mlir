// RUN: tessera opt %s | filecheck %s
// The number of persistent CTAs.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
  %one = pipe.cta_count
  %same = pipe.cta_count {k}
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
// CHECK-NEXT:     %one = pipe.cta_count
// CHECK-NEXT:     %same = pipe.cta_count {k}
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
