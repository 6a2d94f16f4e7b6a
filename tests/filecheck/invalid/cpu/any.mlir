cpu.func @f(%x: f32) shapes [[]] grid [1] {
  %t = tile.full %x : tensor<4xf32>
  // expected: any looks at a tile of i1, not tensor<4xf32>
  %a = cpu.any %t : tensor<4xf32>
  cpu.return
}
// -----
cpu.func @f(%x: i1) shapes [[]] grid [1] {
  // expected: i1 should be of base attribute
  %a = cpu.any %x : i1
  cpu.return
}
