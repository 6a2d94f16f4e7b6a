tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: somebody has to compute, got 0 agents
  pipe.roles 0 copies {
    %nothing = arith.constant 0 : index
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
// expected: roles are given at the top of a tile function
pipe.roles 1 copies {
  %n = arith.constant 0 : index
} computes {
  %n = arith.constant 0 : index
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a function gives roles once
  pipe.roles 1 copies {
    %n = arith.constant 0 : index
  } computes {
    %n = arith.constant 0 : index
  }
  pipe.roles 1 copies {
    %n = arith.constant 0 : index
  } computes {
    %n = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: roles take no arguments
  pipe.roles 2 copies {
  ^bb0(%n: index):
    %nothing = arith.constant 0 : index
  } computes {
    %nothing = arith.constant 0 : index
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: an agent does something
  pipe.roles 1 copies {
  ^bb0:
  } computes {
  ^bb0:
  }
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: Region 'copies' at position 0 expected a single block
  pipe.roles 1 copies {
  } computes {
  }
  tile.return
}
