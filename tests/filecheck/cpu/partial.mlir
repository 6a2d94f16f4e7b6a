// RUN: tessera opt %s | filecheck %s
// A reduction that is not finished yet: the columns of one tile folded into the fewer of another.
cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
  %acc = tile.full %x : tensor<4x8xf32>
  %more = tile.full %x : tensor<4x13xf32>
  %sum = cpu.partial<sum> %acc, %more : tensor<4x8xf32>, tensor<4x13xf32> -> tensor<4x8xf32>
  %top = cpu.partial<max> %acc, %more {k} : tensor<4x8xf32>, tensor<4x13xf32> -> tensor<4x8xf32>
  %flat = tile.full %i : tensor<1xi32>
  %row = tile.full %i : tensor<5xi32>
  %bits = cpu.partial<xor> %flat, %row : tensor<1xi32>, tensor<5xi32> -> tensor<1xi32>
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%x: f32, %i: i32) shapes [[], []] grid [1] {
// CHECK-NEXT:     %acc = tile.full %x : tensor<4x8xf32>
// CHECK-NEXT:     %more = tile.full %x : tensor<4x13xf32>
// CHECK-NEXT:     %sum = cpu.partial<sum> %acc, %more : tensor<4x8xf32>, tensor<4x13xf32> -> tensor<4x8xf32>
// CHECK-NEXT:     %top = cpu.partial<max> %acc, %more {k} : tensor<4x8xf32>, tensor<4x13xf32> -> tensor<4x8xf32>
// CHECK-NEXT:     %flat = tile.full %i : tensor<1xi32>
// CHECK-NEXT:     %row = tile.full %i : tensor<5xi32>
// CHECK-NEXT:     %bits = cpu.partial<xor> %flat, %row : tensor<1xi32>, tensor<5xi32> -> tensor<1xi32>
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
