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
    // expected: !pipe.pending<64x32xf32> becomes tensor<64x32xf32>, not tensor<64x32xbf16>
    %s = pipe.dot_wait %p younger 0 : !pipe.pending<64x32xf32> -> tensor<64x32xbf16>
  }
  tile.return
}
// -----
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
    // expected: a number of dots is not negative, got -1
    %s = pipe.dot_wait %p younger -1 : !pipe.pending<64x32xf32> -> tensor<64x32xf32>
  }
  tile.return
}
