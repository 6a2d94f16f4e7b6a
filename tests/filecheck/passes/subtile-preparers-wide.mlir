// RUN: tessera opt %s -p subtile-preparers | filecheck %s
// Wider elements are read for each piece, too.
!narrow = tensor<128x64xf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 8:0*16]>>
!wide = tensor<128x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 8:0*16]>>
!row = tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>
!column = tensor<128x1xf32, #nv.layout<[8:_, 16:0*1], [8:0*16]>>
nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 0 shapes [[1, 64], [128, 1]] grid [1] threads 128 {
  %zero = arith.constant 0 : index
  %packed = nv.alloc : !nv.shared<128x64xf16, 128>
  %room = nv.alloc : !nv.shared<128x64xbf16, 128>
  %t = nv.read %packed[0, 0] : !nv.shared<128x64xf16, 128> -> !narrow
  %s = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> !row
  %z = tile.load %y[%zero, %zero] : !tile.view<2, f32, global> -> !column
  %a = tile.ew<cast> %t : !narrow -> !wide
  %b = tile.broadcast %s : !row -> !wide
  %c = tile.ew<mul> %a, %b : !wide, !wide -> !wide
  %d = tile.broadcast %z : !column -> !wide
  %e = tile.ew<add> %c, %d : !wide, !wide -> !wide
  %g = tile.ew<cast> %e : !wide -> tensor<128x64xbf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 8:0*16]>>
  nv.write %g, %room : tensor<128x64xbf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 8:0*16]>>, !nv.shared<128x64xbf16, 128>
  nv.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   nv.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 0 shapes [[1, 64], [128, 1]] grid [1] threads 128 {
// CHECK-NEXT:     %zero = arith.constant 0 : index
// CHECK-NEXT:     %packed = nv.alloc : !nv.shared<128x64xf16, 128>
// CHECK-NEXT:     %room = nv.alloc : !nv.shared<128x64xbf16, 128>
// CHECK-NEXT:     %s = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>>
// CHECK-NEXT:     %z = tile.load %y[%zero, %zero] : !tile.view<2, f32, global> -> tensor<128x1xf32, #nv.layout<[8:_, 16:0*1], [8:0*16]>>
// CHECK-NEXT:     %t = nv.read %packed[0, 0] : !nv.shared<128x64xf16, 128> -> tensor<64x64xf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %a = tile.ew<cast> %t : tensor<64x64xf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %b = tile.broadcast %s : tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %c = tile.ew<mul> %a, %b : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>, tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %0 = nv.rows %z, 0[0] : tensor<128x1xf32, #nv.layout<[8:_, 16:0*1], [8:0*16]>> -> tensor<64x1xf32, #nv.layout<[8:_, 16:0*1], [4:0*16]>>
// CHECK-NEXT:     %d = tile.broadcast %0 : tensor<64x1xf32, #nv.layout<[8:_, 16:0*1], [4:0*16]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %e = tile.ew<add> %c, %d : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>, tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %g = tile.ew<cast> %e : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64x64xbf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     nv.write %g, %room row 0 : tensor<64x64xbf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>, !nv.shared<128x64xbf16, 128>
// CHECK-NEXT:     %t_1 = nv.read %packed[64, 0] : !nv.shared<128x64xf16, 128> -> tensor<64x64xf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %a_1 = tile.ew<cast> %t_1 : tensor<64x64xf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %b_1 = tile.broadcast %s : tensor<1x64xf32, #nv.layout<[8:1*8, 16:_], [8:1*1]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %c_1 = tile.ew<mul> %a_1, %b_1 : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>, tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %1 = nv.rows %z, 0[64] : tensor<128x1xf32, #nv.layout<[8:_, 16:0*1], [8:0*16]>> -> tensor<64x1xf32, #nv.layout<[8:_, 16:0*1], [4:0*16]>>
// CHECK-NEXT:     %d_1 = tile.broadcast %1 : tensor<64x1xf32, #nv.layout<[8:_, 16:0*1], [4:0*16]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %e_1 = tile.ew<add> %c_1, %d_1 : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>, tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     %g_1 = tile.ew<cast> %e_1 : tensor<64x64xf32, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>> -> tensor<64x64xbf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>
// CHECK-NEXT:     nv.write %g_1, %room row 64 : tensor<64x64xbf16, #nv.layout<[8:1*8, 16:0*1], [8:1*1, 4:0*16]>>, !nv.shared<128x64xbf16, 128>
// CHECK-NEXT:     nv.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
