// RUN: tessera opt %s -p transpose-operands | filecheck %s
// A right factor that lies along the depth stays as it is.
// CHECK-NOT:  turns
// CHECK:      computes
// CHECK-NOT:  pipe.turn
// CHECK:      tile.return
tile.func @f(%a: !tile.view<2, f8E4M3FN, global>, %b: !tile.view<2, f8E4M3FN, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[M, K], [K, 8], [M, 8]] grid ["(M + 15)//16"] attributes {workers} {
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %rows = arith.constant 16 : index
  %k = tile.dim %a, 1 : !tile.view<2, f8E4M3FN, global>
  %nothing = arith.constant 0.000000e+00 : f32
  %a_ring = pipe.ring : !pipe.ring<2, 16x8xf8E4M3FN>
  %b_ring = pipe.ring : !pipe.ring<2, 8x8xf8E4M3FN>
  %0 = pipe.worker
  %1 = pipe.workers
  %2 = pipe.extent 0
  pipe.roles 2 copies {
    %3 = pipe.cursor %a_ring : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.cursor<2>
    %4 = pipe.cursor %b_ring : !pipe.ring<2, 8x8xf8E4M3FN> -> !pipe.cursor<2>
    %5, %6 = scf.for %7 = %0 to %2 step %1 iter_args(%8 = %3, %9 = %4) -> (!pipe.cursor<2>, !pipe.cursor<2>) {
      %row = arith.muli %7, %rows : index
      %10, %11 = scf.for %i = %zero to %k step %eight iter_args(%12 = %8, %13 = %9) -> (!pipe.cursor<2>, !pipe.cursor<2>) {
        pipe.fill %a[%row, %i], %a_ring[%12] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
        %14 = pipe.next %12 : !pipe.cursor<2>
        pipe.fill %b[%i, %zero], %b_ring[%13] : !tile.view<2, f8E4M3FN, global>, !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.cursor<2>
        %15 = pipe.next %13 : !pipe.cursor<2>
        scf.yield %14, %15 : !pipe.cursor<2>, !pipe.cursor<2>
      }
      scf.yield %10, %11 : !pipe.cursor<2>, !pipe.cursor<2>
    }
  } computes {
    %16 = pipe.agent
    %17 = arith.muli %16, %eight : index
    %18 = pipe.cursor %a_ring : !pipe.ring<2, 16x8xf8E4M3FN> -> !pipe.cursor<2>
    %19 = pipe.cursor %b_ring : !pipe.ring<2, 8x8xf8E4M3FN> -> !pipe.cursor<2>
    %20, %21 = scf.for %22 = %0 to %2 step %1 iter_args(%23 = %18, %24 = %19) -> (!pipe.cursor<2>, !pipe.cursor<2>) {
      %first = arith.muli %22, %rows : index
      %row_1 = arith.addi %first, %17 : index
      %clear = tile.full %nothing : tensor<8x8xf32>
      %sums, %25, %26 = scf.for %i_1 = %zero to %k step %eight iter_args(%27 = %clear, %28 = %23, %29 = %24) -> (tensor<8x8xf32>, !pipe.cursor<2>, !pipe.cursor<2>) {
        %left = pipe.take part %a_ring[%28] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2> -> tensor<8x8xf8E4M3FN>
        %right = pipe.take %b_ring[%29] : !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.cursor<2> -> tensor<8x8xf8E4M3FN>
        %turned = tile.trans %right, [1, 0] : tensor<8x8xf8E4M3FN> -> tensor<8x8xf8E4M3FN>
        %30 = tile.dot %left, %turned, %27 : tensor<8x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>, tensor<8x8xf32> -> tensor<8x8xf32>
        pipe.release %a_ring[%28] : !pipe.ring<2, 16x8xf8E4M3FN>, !pipe.cursor<2>
        %31 = pipe.next %28 : !pipe.cursor<2>
        pipe.release %b_ring[%29] : !pipe.ring<2, 8x8xf8E4M3FN>, !pipe.cursor<2>
        %32 = pipe.next %29 : !pipe.cursor<2>
        scf.yield %30, %31, %32 : tensor<8x8xf32>, !pipe.cursor<2>, !pipe.cursor<2>
      }
      tile.store %sums, %y[%row_1, %zero] : tensor<8x8xf32>, !tile.view<2, f32, global>
      scf.yield %25, %26 : !pipe.cursor<2>, !pipe.cursor<2>
    }
  }
  tile.return
}
