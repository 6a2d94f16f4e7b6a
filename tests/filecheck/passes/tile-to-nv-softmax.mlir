// RUN: tessera opt %s -p tile-to-nv{warps=2} | filecheck %s
// Four neighbours in a row to each thread. Sums of rows, and what repeats them, lie as the rows do: nothing is converted.
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 64], [M, 64]] grid ["(M + 7)//8"] {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %program = tile.program_id 0
  %row = arith.muli %program, %eight : index
  %a = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32>
  %sum = tile.reduce<sum> %a, 1 : tensor<8x64xf32> -> tensor<8xf32>
  %column = tile.expand %sum, 1 : tensor<8xf32> -> tensor<8x1xf32>
  %sums = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x64xf32>
  %b = tile.ew<div> %a, %sums : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  tile.store %b, %y[%row, %zero] : tensor<8x64xf32>, !tile.view<2, f32, global>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, 64], [M, 64]] grid ["(M + 7)//8"] threads 64 {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %eight = arith.constant 8 : index
// CHECK-NEXT:     %program = tile.program_id 0
// CHECK-NEXT:     %row = arith.muli %program, %eight : index
// CHECK-NEXT:     %a = tile.load %x[%row, %zero] : !tile.view<2, f32, global> -> tensor<8x64xf32, #nv.layout<[16:1*4, 4:0*1], [4:1*1, 2:0*4]>>
// CHECK-NEXT:     %sum = tile.reduce<sum> %a, 1 : tensor<8x64xf32, #nv.layout<[16:1*4, 4:0*1], [4:1*1, 2:0*4]>> -> tensor<8xf32, #nv.layout<[16:_, 4:0*1], [2:0*4]>>
// CHECK-NEXT:     %column = tile.expand %sum, 1 : tensor<8xf32, #nv.layout<[16:_, 4:0*1], [2:0*4]>> -> tensor<8x1xf32, #nv.layout<[16:_, 4:0*1], [2:0*4]>>
// CHECK-NEXT:     %sums = tile.broadcast %column : tensor<8x1xf32, #nv.layout<[16:_, 4:0*1], [2:0*4]>> -> tensor<8x64xf32, #nv.layout<[16:1*4, 4:0*1], [4:1*1, 2:0*4]>>
// CHECK-NEXT:     %b = tile.ew<div> %a, %sums : tensor<8x64xf32, #nv.layout<[16:1*4, 4:0*1], [4:1*1, 2:0*4]>>, tensor<8x64xf32, #nv.layout<[16:1*4, 4:0*1], [4:1*1, 2:0*4]>> -> tensor<8x64xf32, #nv.layout<[16:1*4, 4:0*1], [4:1*1, 2:0*4]>>
// CHECK-NEXT:     tile.store %b, %y[%row, %zero] : tensor<8x64xf32, #nv.layout<[16:1*4, 4:0*1], [4:1*1, 2:0*4]>>, !tile.view<2, f32, global>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
