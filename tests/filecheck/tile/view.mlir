// RUN: tessera opt %s | filecheck %s
// Other sizes and strides over the same memory; rank may change, element and space stay.
tile.func @f(%x: !tile.view<2, bf16, global>, %s: !tile.view<1, i4, shared>) outputs 0 shapes [[M, "2*N + 1"], [N]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = tile.dim %x, 0 : !tile.view<2, bf16, global>
  %n = tile.dim %x, 1 : !tile.view<2, bf16, global>
  %step = tile.stride %x, 0 : !tile.view<2, bf16, global>
  %transposed = tile.view %x offset %zero sizes [%n, %m] strides [%one, %step] : !tile.view<2, bf16, global> -> !tile.view<2, bf16, global>
  %row = tile.view %transposed offset %step sizes [%n] strides [%one] {k} : !tile.view<2, bf16, global> -> !tile.view<1, bf16, global>
  %item = tile.view %s offset %one sizes [] strides [] : !tile.view<1, i4, shared> -> !tile.view<0, i4, shared>
  %deep = tile.view %item offset %zero sizes [%one, %one, %one] strides [%zero, %zero, %zero] : !tile.view<0, i4, shared> -> !tile.view<3, i4, shared>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %s: !tile.view<1, i4, shared>) outputs 0 shapes [[M, "2*N + 1"], [N]] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %one = arith.constant 1 : index
// CHECK-NEXT:     %m = tile.dim %x, 0 : !tile.view<2, bf16, global>
// CHECK-NEXT:     %n = tile.dim %x, 1 : !tile.view<2, bf16, global>
// CHECK-NEXT:     %step = tile.stride %x, 0 : !tile.view<2, bf16, global>
// CHECK-NEXT:     %transposed = tile.view %x offset %zero sizes[%n, %m] strides[%one, %step] : !tile.view<2, bf16, global> -> !tile.view<2, bf16, global>
// CHECK-NEXT:     %row = tile.view %transposed offset %step sizes[%n] strides[%one] {k} : !tile.view<2, bf16, global> -> !tile.view<1, bf16, global>
// CHECK-NEXT:     %item = tile.view %s offset %one sizes[] strides[] : !tile.view<1, i4, shared> -> !tile.view<0, i4, shared>
// CHECK-NEXT:     %deep = tile.view %item offset %zero sizes[%one, %one, %one] strides[%zero, %zero, %zero] : !tile.view<0, i4, shared> -> !tile.view<3, i4, shared>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
