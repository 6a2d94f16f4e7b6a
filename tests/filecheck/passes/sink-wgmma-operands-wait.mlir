// RUN: tessera opt %s -p sink-wgmma-operands | filecheck %s
// The registers of a left operand are written behind the wait: until then another dot is in flight.
!sum = tensor<64x64xf32, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
!left = tensor<64x64xf16, #nv.layout<[4:1*2, 8:0*1, 4:0*16], [2:1*1, 2:0*8, 8:1*8]>>
!shared = !nv.shared<64x64xf16, 128>
nv.func @f(%z: f32, %y: !tile.view<2, f32, global>) outputs 1 shapes [[], [64, 64]] grid [1] threads 128 {
  %zero = arith.constant 0 : index
  %a = nv.alloc : !shared
  %scores = tile.full %z : !sum
  %first = nv.wgmma %a, %a : !shared, !shared -> !sum
  %weights = tile.ew<cast> %scores : !sum -> !left
  %other = tile.ew<neg> %scores : !sum -> !sum
  %done = nv.wgmma_wait 0, %first : !sum
  %second = nv.wgmma %weights, %a onto %done : !left, !shared -> !sum
  %sum = nv.wgmma_wait 0, %second : !sum
  %both = tile.ew<add> %sum, %other : !sum, !sum -> !sum
  tile.store %both, %y[%zero, %zero] : !sum, !tile.view<2, f32, global>
  nv.return
}

// CHECK:      %first = nv.wgmma %a, %a
// CHECK-NEXT: %other = tile.ew<neg>
// CHECK-NEXT: %done = nv.wgmma_wait 0, %first
// CHECK-NEXT: %weights = tile.ew<cast> %scores
// CHECK-NEXT: %second = nv.wgmma %weights, %a onto %done
