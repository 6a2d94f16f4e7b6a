tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: the producer does not read what it has copied
    %t = pipe.consumer_wait %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<8x16xbf16>
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: a ring of tensor<8x16xbf16> does not hold tensor<4x16xbf16>
    %t = pipe.consumer_wait %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<4x16xbf16>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: 2 of tensor<8x16xbf16> are not tensor<8x16xbf16>
    %t = pipe.consumer_wait part %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<8x16xbf16>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 3 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: 3 of tensor<2x16xbf16> are not tensor<8x16xbf16>
    %t = pipe.consumer_wait part %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<2x16xbf16>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, bf16>
  pipe.warp_specialize 1 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, bf16> -> !pipe.pipeline_state<3>
    // expected: 1 of tensor<bf16> are not tensor<bf16>
    %t = pipe.consumer_wait part %ring[%state] : !pipe.ring<3, bf16>, !pipe.pipeline_state<3> -> tensor<bf16>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: columns are shared as a part only
    %t = pipe.consumer_wait columns %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<8x8xbf16>
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  %ring = pipe.ring : !pipe.ring<3, 8x16xbf16>
  pipe.warp_specialize 2 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %state = pipe.pipeline_state %ring : !pipe.ring<3, 8x16xbf16> -> !pipe.pipeline_state<3>
    // expected: 2 of tensor<4x16xbf16> are not tensor<8x16xbf16>
    %t = pipe.consumer_wait part columns %ring[%state] : !pipe.ring<3, 8x16xbf16>, !pipe.pipeline_state<3> -> tensor<4x16xbf16>
  }
  tile.return
}
