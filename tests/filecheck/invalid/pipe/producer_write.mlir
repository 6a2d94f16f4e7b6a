tile.func @f(%t: f32) outputs 0 shapes [[]] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf32>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %p = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf32> -> !pipe.pipeline_state<2>
    %tile = tile.full %t : tensor<8x16xf32>
    // expected: operands are computed by the partition `preparer`
    pipe.producer_write %tile, %ring[%p] : tensor<8x16xf32>, !pipe.ring<2, 8x16xf32>, !pipe.pipeline_state<2>
  }
  tile.return
}
// -----
tile.func @f(%t: f32) outputs 0 shapes [[]] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf32>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } preparer {
    %p = pipe.pipeline_state %ring : !pipe.ring<2, 8x16xf32> -> !pipe.pipeline_state<2>
    %tile = tile.full %t : tensor<16x8xf32>
    // expected: a ring of tensor<8x16xf32> does not hold tensor<16x8xf32>
    pipe.producer_write %tile, %ring[%p] : tensor<16x8xf32>, !pipe.ring<2, 8x16xf32>, !pipe.pipeline_state<2>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%t: f32) outputs 0 shapes [[]] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<2, 8x16xf32>
  %other = pipe.ring : !pipe.ring<3, 8x16xf32>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } preparer {
    %p = pipe.pipeline_state %other : !pipe.ring<3, 8x16xf32> -> !pipe.pipeline_state<3>
    %tile = tile.full %t : tensor<8x16xf32>
    // expected: a pipeline state of 3 slots in a ring of 2
    pipe.producer_write %tile, %ring[%p] : tensor<8x16xf32>, !pipe.ring<2, 8x16xf32>, !pipe.pipeline_state<3>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
