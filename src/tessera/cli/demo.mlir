// y = gelu(x · w + b): the product is a tile kernel, the rest is fused into one.
tile.func @matmul(%x: !tile.view<2, f32, global>, %w: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, N], [M, N]] grid ["(M + 15)//16", "(N + 31)//32"] {
  %i = tile.program_id 0
  %j = tile.program_id 1
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0 : index
  %row = arith.muli %i, %c16 : index
  %column = arith.muli %j, %c32 : index
  %depth = tile.dim %x, 1 : !tile.view<2, f32, global>
  %nothing = arith.constant 0.0 : f32
  %start = tile.full %nothing : tensor<16x32xf32>
  %sum = scf.for %k = %zero to %depth step %c16 iter_args(%partial = %start) -> (tensor<16x32xf32>) {
    %a = tile.load %x[%row, %k] : !tile.view<2, f32, global> -> tensor<16x16xf32>
    %b = tile.load %w[%k, %column] : !tile.view<2, f32, global> -> tensor<16x32xf32>
    %next = tile.dot %a, %b, %partial : tensor<16x16xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
    scf.yield %next : tensor<16x32xf32>
  }
  tile.store %sum, %y[%row, %column] : tensor<16x32xf32>, !tile.view<2, f32, global>
  tile.return
}
graph.func @layer(%x: !graph.tensor<[B, D], f32>, %w: !graph.tensor<[D, F], f32>, %bias: !graph.tensor<[F], f32>) -> (!graph.tensor<[B, F], f32>) {
  %product = graph.call_kernel @matmul(%x, %w) : (!graph.tensor<[B, D], f32>, !graph.tensor<[D, F], f32>) -> !graph.tensor<[B, F], f32>
  %wide = graph.broadcast %bias : !graph.tensor<[F], f32> -> !graph.tensor<[B, F], f32>
  %sum = graph.ew<add> %product, %wide : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %root = graph.constant !graph.tensor<[B, F], f32> = [0.70710678118]
  %scaled = graph.ew<mul> %sum, %root : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %bell = graph.ew<erf> %scaled : !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %one = graph.constant !graph.tensor<[B, F], f32> = [1.0]
  %gate = graph.ew<add> %bell, %one : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %half = graph.constant !graph.tensor<[B, F], f32> = [0.5]
  %share = graph.ew<mul> %gate, %half : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  %y = graph.ew<mul> %sum, %share : !graph.tensor<[B, F], f32>, !graph.tensor<[B, F], f32> -> !graph.tensor<[B, F], f32>
  graph.return %y : !graph.tensor<[B, F], f32>
}
