// RUN: tessera opt %s | filecheck %s
cpu.func @f(%x: i1) shapes [[]] grid [1] {
  %row = tile.full %x : tensor<16xi1>
  %tile = tile.full %x : tensor<4x3xi1>
  %a = cpu.any %row : tensor<16xi1>
  %b = cpu.any %tile {k} : tensor<4x3xi1>
  %both = arith.andi %a, %b : i1
  cpu.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   cpu.func @f(%x: i1) shapes [[]] grid [1] {
// CHECK-NEXT:     %row = tile.full %x : tensor<16xi1>
// CHECK-NEXT:     %tile = tile.full %x : tensor<4x3xi1>
// CHECK-NEXT:     %a = cpu.any %row : tensor<16xi1>
// CHECK-NEXT:     %b = cpu.any %tile {k} : tensor<4x3xi1>
// CHECK-NEXT:     %both = arith.andi %a, %b : i1
// CHECK-NEXT:     cpu.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
