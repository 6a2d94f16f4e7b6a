tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: axis 2 is out of range for rank 2
  %n = pipe.grid_extent 2
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: axis -1 is out of range for rank 2
  %n = pipe.grid_extent -1
  tile.return
}
// -----
// expected: pipe.grid_extent is a part of a tile function
%n = pipe.grid_extent 0
