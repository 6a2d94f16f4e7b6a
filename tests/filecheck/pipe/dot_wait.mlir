// RUN: tessera opt %s | filecheck %s
// The sums of a product, while younger ones may run.
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %number = arith.constant 1.0 : bf16
    %zero = arith.constant 0.0 : f32
    %a = tile.full %number : tensor<64x16xbf16>
    %b = tile.full %number : tensor<16x32xbf16>
    %c = tile.full %zero : tensor<64x32xf32>
    %p = pipe.dot_start %a, %b, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<64x32xf32>
    %q = pipe.dot_start %a, %b, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<64x32xf32>
    %first = pipe.dot_wait %p younger 1 : !pipe.pending<64x32xf32> -> tensor<64x32xf32>
    %second = pipe.dot_wait %q younger 0 {k} : !pipe.pending<64x32xf32> -> tensor<64x32xf32>
  }
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
// CHECK-NEXT:     pipe.warp_specialize 2 producer {
// CHECK-NEXT:       %nothing = arith.constant 0 : index
// CHECK-NEXT:     } consumer {
// CHECK-NEXT:       %number = arith.constant 1.000000e+00 : bf16
// CHECK-NEXT:       %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:       %a = tile.full %number : tensor<64x16xbf16>
// CHECK-NEXT:       %b = tile.full %number : tensor<16x32xbf16>
// CHECK-NEXT:       %c = tile.full %zero : tensor<64x32xf32>
// CHECK-NEXT:       %p = pipe.dot_start %a, %b, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<64x32xf32>
// CHECK-NEXT:       %q = pipe.dot_start %a, %b, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<64x32xf32>
// CHECK-NEXT:       %first = pipe.dot_wait %p younger 1 : !pipe.pending<64x32xf32> -> tensor<64x32xf32>
// CHECK-NEXT:       %second = pipe.dot_wait %q younger 0 {k} : !pipe.pending<64x32xf32> -> tensor<64x32xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
