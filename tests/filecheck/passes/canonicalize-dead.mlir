// RUN: tessera opt %s -p canonicalize | filecheck %s
// What is not used goes at the end, what can be noticed stays.
tile.func @f(%x: !tile.view<1, f32, global>) outputs 1 shapes [[N]] grid [1] {
  %i = arith.constant 3 : index
  %unused = arith.constant 4 : index
  %t = tile.load %x[%i] : !tile.view<1, f32, global> -> tensor<4xf32>
  %e = tile.ew<exp> %t : tensor<4xf32> -> tensor<4xf32>
  %flag = arith.constant true
  tile.assert %flag, "holds" : i1
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<1, f32, global>) outputs 1 shapes [[N]] grid [1] {
// CHECK-NEXT:     %flag = arith.constant true
// CHECK-NEXT:     tile.assert %flag, "holds" : i1
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
