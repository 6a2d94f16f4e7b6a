// RUN: tessera opt %s | filecheck %s
// Whole numbers along any axis.
tile.func @f(%i: i32, %u: ui8) outputs 0 shapes [[], []] grid [1] {
  %x = tile.full %i : tensor<16x72xi32>
  %rows = tile.sort %x, 1 : tensor<16x72xi32> -> tensor<16x72xi32>
  %columns = tile.sort %rows, 0 {k} : tensor<16x72xi32> -> tensor<16x72xi32>
  %bytes = tile.full %u : tensor<0xui8>
  %none = tile.sort %bytes, 0 : tensor<0xui8> -> tensor<0xui8>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%i: i32, %u: ui8) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %x = tile.full %i : tensor<16x72xi32>
// CHECK-NEXT:     %rows = tile.sort %x, 1 : tensor<16x72xi32> -> tensor<16x72xi32>
// CHECK-NEXT:     %columns = tile.sort %rows, 0 {k} : tensor<16x72xi32> -> tensor<16x72xi32>
// CHECK-NEXT:     %bytes = tile.full %u : tensor<0xui8>
// CHECK-NEXT:     %none = tile.sort %bytes, 0 : tensor<0xui8> -> tensor<0xui8>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
