// RUN: tessera opt %s | filecheck %s
// A tile goes to computed places; a mask leaves some elements out.
tile.func @f(%x: !tile.view<2, bf16, global>, %y: !tile.view<1, ui8, global>, %i: index) outputs 0 shapes [[M, "2*N + 1"], [N], []] grid [1] {
  %rows = tile.iota %i, 0 : tensor<16x72xi64>
  %columns = tile.iota %i, 1 : tensor<16x72xi64>
  %two = tile.read %x[%rows, %columns] : !tile.view<2, bf16, global>, tensor<16x72xi64>, tensor<16x72xi64> -> tensor<16x72xbf16>
  %above = tile.ew<lt> %rows, %columns : tensor<16x72xi64>, tensor<16x72xi64> -> tensor<16x72xi1>
  tile.write %two, %x[%rows, %columns] : tensor<16x72xbf16>, !tile.view<2, bf16, global>, tensor<16x72xi64>, tensor<16x72xi64>
  tile.write %two, %x[%rows, %columns] mask %above : tensor<16x72xi1> {k} : tensor<16x72xbf16>, !tile.view<2, bf16, global>, tensor<16x72xi64>, tensor<16x72xi64>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, bf16, global>, %y: !tile.view<1, ui8, global>, %i: index) outputs 0 shapes [[M, "2*N + 1"], [N], []] grid [1] {
// CHECK-NEXT:     %rows = tile.iota %i, 0 : tensor<16x72xi64>
// CHECK-NEXT:     %columns = tile.iota %i, 1 : tensor<16x72xi64>
// CHECK-NEXT:     %two = tile.read %x[%rows, %columns] : !tile.view<2, bf16, global>, tensor<16x72xi64>, tensor<16x72xi64> -> tensor<16x72xbf16>
// CHECK-NEXT:     %above = tile.ew<lt> %rows, %columns : tensor<16x72xi64>, tensor<16x72xi64> -> tensor<16x72xi1>
// CHECK-NEXT:     tile.write %two, %x[%rows, %columns] : tensor<16x72xbf16>, !tile.view<2, bf16, global>, tensor<16x72xi64>, tensor<16x72xi64>
// CHECK-NEXT:     tile.write %two, %x[%rows, %columns] mask %above : tensor<16x72xi1> {k} : tensor<16x72xbf16>, !tile.view<2, bf16, global>, tensor<16x72xi64>, tensor<16x72xi64>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
