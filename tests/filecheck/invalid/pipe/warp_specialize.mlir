tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: expected at least one consumer, got 0
  pipe.warp_specialize 0 producer {
    %nothing = arith.constant 0 : index
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
// expected: pipe.warp_specialize stands at the top of a tile function
pipe.warp_specialize 1 producer {
  %n = arith.constant 0 : index
} consumer {
  %n = arith.constant 0 : index
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a function is specialized once
  pipe.warp_specialize 1 producer {
    %n = arith.constant 0 : index
  } consumer {
    %n = arith.constant 0 : index
  }
  pipe.warp_specialize 1 producer {
    %n = arith.constant 0 : index
  } consumer {
    %n = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: partitions take no arguments
  pipe.warp_specialize 2 producer {
  ^bb0(%n: index):
    %nothing = arith.constant 0 : index
  } consumer {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a partition has at least one op
  pipe.warp_specialize 1 producer {
  ^bb0:
  } consumer {
  ^bb0:
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: Region 'producer' at position 0 expected a single block
  pipe.warp_specialize 1 producer {
  } consumer {
  }
  tile.return
}
