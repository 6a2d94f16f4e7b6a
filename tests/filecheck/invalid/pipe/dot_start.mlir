tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.warp_specialize 2 producer {
    %number = arith.constant 1.0 : bf16
    %zero = arith.constant 0.0 : f32
    %a = tile.full %number : tensor<64x16xbf16>
    %b = tile.full %number : tensor<16x32xbf16>
    %c = tile.full %zero : tensor<64x32xf32>
    // expected: the producer does not multiply
    %p = pipe.dot_start %a, %b, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<64x32xf32>
  } consumer {
    %nothing = arith.constant 0 : index
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
    // expected: an accumulator of tensor<64x32xf32> is not tensor<32x64xf32>
    %p = pipe.dot_start %a, %b, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<32x64xf32>
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
    %a = tile.full %number : tensor<64x8xbf16>
    %b = tile.full %number : tensor<16x32xbf16>
    %c = tile.full %zero : tensor<64x32xf32>
    // expected: the dot of tensor<64x8xbf16> and tensor<16x32xbf16> is not tensor<64x32xf32>: expected [M, K], [K, N] and [M, N]
    %p = pipe.dot_start %a, %b, %c : tensor<64x8xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<64x32xf32>
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
    %a = tile.full %number : tensor<64xbf16>
    %b = tile.full %number : tensor<16x32xbf16>
    %c = tile.full %zero : tensor<64x32xf32>
    // expected: expected [M, K], [K, N] and [M, N]
    %p = pipe.dot_start %a, %b, %c : tensor<64xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<64x32xf32>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %number = arith.constant 1.0 : bf16
    %zero = arith.constant 0 : i32
    %a = tile.full %number : tensor<64x16xbf16>
    %b = tile.full %number : tensor<16x32xbf16>
    %c = tile.full %zero : tensor<64x32xi32>
    // expected: bf16 times bf16 into i32: expected equal operands, and an accumulator of their kind and no fewer bits
    %p = pipe.dot_start %a, %b, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xi32> -> !pipe.pending<64x32xi32>
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
    // expected: dots give tiles, got tensor<64x?xf32>
    %p = pipe.dot_start %a, %b, %c : tensor<64x16xbf16>, tensor<16x32xbf16>, tensor<64x32xf32> -> !pipe.pending<64x?xf32>
  }
  tile.return
}
