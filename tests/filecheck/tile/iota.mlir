// RUN: tessera opt %s | filecheck %s
// Counting from a base along one axis, in any integer type.
tile.func @f() outputs 0 shapes [] grid [4] {
  %base = tile.program_id 0
  %a = tile.iota %base, 0 : tensor<80xi32>
  %b = tile.iota %base, 1 : tensor<16x72xi4>
  %c = tile.iota %base, 0 {k} : tensor<0xui8>
  %d = tile.iota %base, 0 : tensor<3xindex>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   tile.func @f() outputs 0 shapes [] grid [4] {
// CHECK-NEXT:     %base = tile.program_id 0
// CHECK-NEXT:     %a = tile.iota %base, 0 : tensor<80xi32>
// CHECK-NEXT:     %b = tile.iota %base, 1 : tensor<16x72xi4>
// CHECK-NEXT:     %c = tile.iota %base, 0 {k} : tensor<0xui8>
// CHECK-NEXT:     %d = tile.iota %base, 0 : tensor<3xindex>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
