cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
  %a = tile.full %x : tensor<4x8xf32>
  %b = tile.full %x : tensor<4x13xf32>
  // expected: the result has the type of the partial result, tensor<4x8xf32>
  %s = cpu.partial<sum> %a, %b : tensor<4x8xf32>, tensor<4x13xf32> -> tensor<4x13xf32>
  cpu.return
}
// -----
cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
  %a = tile.full %x : tensor<4x8xf32>
  %b = tile.full %x : tensor<3x13xf32>
  // expected: tensor<3x13xf32> cannot be folded into tensor<4x8xf32>: only the last axis may differ
  %s = cpu.partial<sum> %a, %b : tensor<4x8xf32>, tensor<3x13xf32> -> tensor<4x8xf32>
  cpu.return
}
// -----
cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
  %a = tile.full %x : tensor<4x8xf32>
  %b = tile.full %i : tensor<4x13xi32>
  // expected: tensor<4x13xi32> cannot be folded into tensor<4x8xf32>: only the last axis may differ
  %s = cpu.partial<sum> %a, %b : tensor<4x8xf32>, tensor<4x13xi32> -> tensor<4x8xf32>
  cpu.return
}
// -----
cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
  %a = tile.full %x : tensor<4x0xf32>
  %b = tile.full %x : tensor<4x13xf32>
  // expected: tensor<4x0xf32> has no columns to fold anything into
  %s = cpu.partial<sum> %a, %b : tensor<4x0xf32>, tensor<4x13xf32> -> tensor<4x0xf32>
  cpu.return
}
// -----
cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
  %a = tile.full %x : tensor<f32>
  %b = tile.full %x : tensor<f32>
  // expected: tensor<f32> has no columns to fold anything into
  %s = cpu.partial<sum> %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>
  cpu.return
}
// -----
cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
  %a = tile.full %x : tensor<4x8xf32>
  %b = tile.full %x : tensor<4x13xf32>
  // expected: xor reduces
  %s = cpu.partial<xor> %a, %b : tensor<4x8xf32>, tensor<4x13xf32> -> tensor<4x8xf32>
  cpu.return
}
// -----
cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
  %a = tile.full %x : tensor<4x8xf32>
  %b = tile.full %x : tensor<4x13xf32>
  // expected: unknown reduction mean
  %s = cpu.partial<mean> %a, %b : tensor<4x8xf32>, tensor<4x13xf32> -> tensor<4x8xf32>
  cpu.return
}
