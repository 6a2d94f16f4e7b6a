// RUN: tessera opt %s | filecheck %s
// Any reduction that the element type has.
tile.func @f(%x: !tile.view<1, f32, global>, %u: !tile.view<1, ui8, global>, %b: !tile.view<0, i1, global>, %h: !tile.view<1, bf16, shared>) outputs 0 shapes [["2*N + 1"], [N], [], [N]] grid [1] {
  %i = arith.constant 3 : index
  %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<8xf32>
  tile.atomic<sum> %a, %x[%i] : tensor<8xf32>, !tile.view<1, f32, global>
  tile.atomic<max> %a, %x[%i] : tensor<8xf32>, !tile.view<1, f32, global>
  %c = tile.load %u[%i] : !tile.view<1, ui8, global> -> tensor<8xui8>
  tile.atomic<xor> %c, %u[%i] : tensor<8xui8>, !tile.view<1, ui8, global>
  %d = tile.load %b[] : !tile.view<0, i1, global> -> tensor<i1>
  tile.atomic<or> %d, %b[] {k} : tensor<i1>, !tile.view<0, i1, global>
  %e = tile.load %h[%i] : !tile.view<1, bf16, shared> -> tensor<0xbf16>
  tile.atomic<min> %e, %h[%i] : tensor<0xbf16>, !tile.view<1, bf16, shared>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>, %u: !tile.view<1, ui8, global>, %b: !tile.view<0, i1, global>, %h: !tile.view<1, bf16, shared>) outputs 0 shapes [["2*N + 1"], [N], [], [N]] grid [1] {
// CHECK-NEXT:     %i = arith.constant 3 : index
// CHECK-NEXT:     %a = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<8xf32>
// CHECK-NEXT:     tile.atomic<sum> %a, %x[%i] : tensor<8xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     tile.atomic<max> %a, %x[%i] : tensor<8xf32>, !tile.view<1, f32, global>
// CHECK-NEXT:     %c = tile.load %u[%i] : !tile.view<1, ui8, global> -> tensor<8xui8>
// CHECK-NEXT:     tile.atomic<xor> %c, %u[%i] : tensor<8xui8>, !tile.view<1, ui8, global>
// CHECK-NEXT:     %d = tile.load %b[] : !tile.view<0, i1, global> -> tensor<i1>
// CHECK-NEXT:     tile.atomic<or> %d, %b[] {k} : tensor<i1>, !tile.view<0, i1, global>
// CHECK-NEXT:     %e = tile.load %h[%i] : !tile.view<1, bf16, shared> -> tensor<0xbf16>
// CHECK-NEXT:     tile.atomic<min> %e, %h[%i] : tensor<0xbf16>, !tile.view<1, bf16, shared>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
