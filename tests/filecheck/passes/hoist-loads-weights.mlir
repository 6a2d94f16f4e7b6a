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

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<1, f32, global>, %w: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N], [N]] grid ["(N + 127)//128"] threads 32 attributes {readonly = array<i64: 1>} {
// CHECK-NEXT:     %program = tile.program_id 0
// CHECK-NEXT:     %step = arith.constant 128 : index
// CHECK-NEXT:     %at = arith.muli %program, %step : index
// CHECK-NEXT:     %weight = tile.load %w[%at] : !tile.view<1, f32, global> -> tensor<128xf32, #nv.layout<[32:0*4], [4:0*1]>>
// CHECK-NEXT:     nv.griddepcontrol_wait
// CHECK-NEXT:     %a = tile.load %x[%at] : !tile.view<1, f32, global> -> tensor<128xf32, #nv.layout<[32:0*4], [4:0*1]>>
// CHECK-NEXT:     %b = tile.ew<exp> %a : tensor<128xf32, #nv.layout<[32:0*4], [4:0*1]>> -> tensor<128xf32, #nv.layout<[32:0*4], [4:0*1]>>
// CHECK-NEXT:     %c = tile.ew<mul> %b, %weight : tensor<128xf32, #nv.layout<[32:0*4], [4:0*1]>>, tensor<128xf32, #nv.layout<[32:0*4], [4:0*1]>> -> tensor<128xf32, #nv.layout<[32:0*4], [4:0*1]>>
// CHECK-NEXT:     tile.store %c, %y[%at] : tensor<128xf32, #nv.layout<[32:0*4], [4:0*1]>>, !tile.view<1, f32, global>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
