// RUN: tessera opt %s | filecheck %s
// Axes of size 1 repeat, also zero times.
tile.func @f(%n: i4, %b: i1) outputs 0 shapes [[], []] grid [1] {
  %x = tile.full %n : tensor<16x1xi4>
  %wide = tile.broadcast %x : tensor<16x1xi4> -> tensor<16x72xi4>
  %same = tile.broadcast %x {k} : tensor<16x1xi4> -> tensor<16x1xi4>
  %none = tile.broadcast %x : tensor<16x1xi4> -> tensor<16x0xi4>
  %scalar = tile.full %b : tensor<i1>
  %still = tile.broadcast %scalar : tensor<i1> -> tensor<i1>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%n: i4, %b: i1) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %x = tile.full %n : tensor<16x1xi4>
// CHECK-NEXT:     %wide = tile.broadcast %x : tensor<16x1xi4> -> tensor<16x72xi4>
// CHECK-NEXT:     %same = tile.broadcast %x {k} : tensor<16x1xi4> -> tensor<16x1xi4>
// CHECK-NEXT:     %none = tile.broadcast %x : tensor<16x1xi4> -> tensor<16x0xi4>
// CHECK-NEXT:     %scalar = tile.full %b : tensor<i1>
// CHECK-NEXT:     %still = tile.broadcast %scalar : tensor<i1> -> tensor<i1>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
