// RUN: tessera opt %s | filecheck %s
// The tile's rank and element are the view's.
tile.func @f(%x: !tile.view<2, bf16, global>, %s: !tile.view<0, i1, shared>, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[M, "2*N + 1"], [], [M, N]] grid [1] {
  %i = arith.constant 3 : index
  %a = tile.load %x[%i, %i] : !tile.view<2, bf16, global> -> tensor<16x72xbf16>
  tile.store %a, %y[%i, %i] : tensor<16x72xbf16>, !tile.view<2, bf16, global>
  %b = tile.load %s[] : !tile.view<0, i1, shared> -> tensor<i1>
  tile.store %b, %s[] {k} : tensor<i1>, !tile.view<0, i1, shared>
  %c = tile.load %x[%i, %i] : !tile.view<2, bf16, global> -> tensor<0x4xbf16>
  tile.store %c, %y[%i, %i] : tensor<0x4xbf16>, !tile.view<2, bf16, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %s: !tile.view<0, i1, shared>, %y: !tile.view<2, bf16, global>) outputs 1 shapes [[M, "2*N + 1"], [], [M, N]] grid [1] {
// CHECK-NEXT:     %i = arith.constant 3 : index
// CHECK-NEXT:     %a = tile.load %x[%i, %i] : !tile.view<2, bf16, global> -> tensor<16x72xbf16>
// CHECK-NEXT:     tile.store %a, %y[%i, %i] : tensor<16x72xbf16>, !tile.view<2, bf16, global>
// CHECK-NEXT:     %b = tile.load %s[] : !tile.view<0, i1, shared> -> tensor<i1>
// CHECK-NEXT:     tile.store %b, %s[] {k} : tensor<i1>, !tile.view<0, i1, shared>
// CHECK-NEXT:     %c = tile.load %x[%i, %i] : !tile.view<2, bf16, global> -> tensor<0x4xbf16>
// CHECK-NEXT:     tile.store %c, %y[%i, %i] : tensor<0x4xbf16>, !tile.view<2, bf16, global>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
