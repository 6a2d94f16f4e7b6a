tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] {
  // expected: a function for persistent CTAs has the attribute `persistent`
  %n = pipe.cta_id
  tile.return
}
// -----
tile.func @f(%x: !tile.view<2, bf16, global>, %i: index) outputs 0 shapes [[M, N], []] grid [4, 2] attributes {persistent} {
  // expected: a persistent CTA runs many program instances: tile.program_id would be none of them
  %n = pipe.cta_id
  %x0 = tile.program_id 0
  tile.return
}
// -----
// expected: pipe.cta_id is a part of a tile function
%n = pipe.cta_id
