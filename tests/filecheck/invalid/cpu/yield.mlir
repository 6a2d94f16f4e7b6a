cpu.func @f() shapes [] grid [1] {
  // expected: 'cpu.yield' expects parent op 'cpu.parallel'
  cpu.yield
}
// -----
// Tiles live in registers, which do not outlast `once`.
cpu.func @f(%n: index, %x: f32) shapes [[], []] grid [1] {
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    %t = tile.full %x : tensor<4xf32>
    // expected: Unexpected attribute tensor<4xf32>
    cpu.yield %t : tensor<4xf32>
  } do {
  ^bb0(%o: index, %i: index, %t: tensor<4xf32>):
    cpu.yield
  }
  cpu.return
}
