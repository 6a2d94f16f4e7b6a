// RUN: tessera opt %s -p "tile-to-nv{warps=1},hoist-loads{readonly=1 follows=true early=true}" | filecheck %s
// Weights that no kernel writes are loaded before the wait for the kernel in front, and other arguments right behind it.
tile.func @f(%x: !tile.view<1, f32, global>, %w: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N], [N]] grid ["(N + 127)//128"] {
  %step = arith.constant 128 : index
  %program = tile.program_id 0
  %at = arith.muli %program, %step : index
  %a = tile.load %x[%at] : !tile.view<1, f32, global> -> tensor<128xf32>
  %b = tile.ew<exp> %a : tensor<128xf32> -> tensor<128xf32>
  %weight = tile.load %w[%at] : !tile.view<1, f32, global> -> tensor<128xf32>
  %c = tile.ew<mul> %b, %weight : tensor<128xf32>, tensor<128xf32> -> tensor<128xf32>
  tile.store %c, %y[%at] : tensor<128xf32>, !tile.view<1, f32, global>
  tile.return
}
