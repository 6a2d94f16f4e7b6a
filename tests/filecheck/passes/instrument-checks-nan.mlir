// RUN: tessera opt %s -p "instrument-checks{bounds=false}" | filecheck %s
// Beside each op that could make a NaN stands an assert; choosing among values makes none, and integers have none.
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 0 shapes [[N], []] grid [1] {
  %a = tile.load %x[%n] : !tile.view<1, f32, global> -> tensor<4xf32>
  %b = tile.ew<log> %a : tensor<4xf32> -> tensor<4xf32>
  %c = tile.iota %n, 0 : tensor<4xi64>
  %d = tile.ew<add> %c, %c : tensor<4xi64>, tensor<4xi64> -> tensor<4xi64>
  tile.store %b, %x[%n] : tensor<4xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:      %[[A:.*]] = tile.load
// CHECK-NEXT: %[[B:.*]] = tile.ew<log> %[[A]]
// CHECK-NEXT: %[[IS:.*]] = tile.ew<isnan> %[[B]]
// CHECK-NEXT: %[[NOT:.*]] = tile.ew<not> %[[IS]]
// CHECK-NEXT: %[[WAS:.*]] = tile.ew<isnan> %[[A]]
// CHECK-NEXT: %[[FINE:.*]] = tile.ew<or> %[[NOT]], %[[WAS]]
// CHECK-NEXT: tile.assert %[[FINE]], "log made NaN of operands that are none" : tensor<4xi1>
// CHECK-NEXT: tile.iota
// CHECK-NEXT: tile.ew<add>
// CHECK-NEXT: tile.store
