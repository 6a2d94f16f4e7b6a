nv.func @f(%x: !tile.view<4, f16, global>) outputs 0 shapes [[B, H, S, 128]] grid [1] threads 128 {
  // expected: should be of base attribute nv.map
  nv.prefetch %x : !tile.view<4, f16, global>
  nv.return
}
