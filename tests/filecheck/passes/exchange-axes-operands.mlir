// RUN: tessera opt %s -p "exchange-axes{arguments=1 axes=0}" | filecheck %s
// The right operand is contiguous along its first axis: its tiles are loaded as they lie, and transposed. Other loads stay.
// CHECK:      tile.func @f
// CHECK:      tile.dim %b, 1
// CHECK:      tile.dim %b, 0
// CHECK:      tile.stride %b, 1
// CHECK:      tile.stride %b, 0
// CHECK:      %b_1 = tile.view %b offset
// CHECK:      %x = tile.load %a[%row, %i]
// CHECK-NEXT: %t = tile.load %b_1[%zero, %i] : !tile.view<2, bf16, global> -> tensor<32x16xbf16>
// CHECK-NEXT: %w = tile.trans %t, [1, 0]
// CHECK-NEXT: tile.dot %x, %w
// CHECK:      tile.dot %long, %t
// CHECK:      tile.load %b[%zero, %zero]
tile.func @f(%a: !tile.view<2, bf16, global>, %b: !tile.view<2, bf16, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, 32], [M, 32]] grid ["(M + 15)//16"] {
  %zero = arith.constant 0 : index
  %step = arith.constant 16 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %step : index
  %k = tile.dim %a, 1 : !tile.view<2, bf16, global>
  %nothing = arith.constant 0.000000e+00 : f32
  %none = tile.full %nothing : tensor<16x32xf32>
  %left = tile.full %nothing : tensor<16x16xf32>
  %total, %other = scf.for %i = %zero to %k step %step iter_args(%sum = %none, %more = %left) -> (tensor<16x32xf32>, tensor<16x16xf32>) {
    %x = tile.load %a[%row, %i] : !tile.view<2, bf16, global> -> tensor<16x16xbf16>
    %w = tile.load %b[%i, %zero] : !tile.view<2, bf16, global> -> tensor<16x32xbf16>
    %t = tile.trans %w, [1, 0] : tensor<16x32xbf16> -> tensor<32x16xbf16>
    %p = tile.dot %x, %w, %sum : tensor<16x16xbf16>, tensor<16x32xbf16>, tensor<16x32xf32> -> tensor<16x32xf32>
    %long = tile.load %a[%row, %zero] : !tile.view<2, bf16, global> -> tensor<16x32xbf16>
    %q = tile.dot %long, %t, %more : tensor<16x32xbf16>, tensor<32x16xbf16>, tensor<16x16xf32> -> tensor<16x16xf32>
    scf.yield %p, %q : tensor<16x32xf32>, tensor<16x16xf32>
  }
  %seen = tile.load %b[%zero, %zero] : !tile.view<2, bf16, global> -> tensor<16x32xbf16>
  %plain = tile.ew<cast> %seen : tensor<16x32xbf16> -> tensor<16x32xf32>
  %y1 = tile.ew<add> %total, %plain : tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
  tile.store %y1, %y[%row, %zero] : tensor<16x32xf32>, !tile.view<2, f32, global>
  tile.return
}
