tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a function with workers has the attribute `workers`
  %n = pipe.worker
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {workers} {
  // expected: a worker goes through many programs: tile.program_id is none of them
  %n = pipe.worker
  %x0 = tile.program_id 0
  tile.return
}
// -----
// expected: pipe.worker is a part of a tile function
%n = pipe.worker
