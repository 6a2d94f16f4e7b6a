// RUN: tessera opt %s | filecheck %s
// One answer for all elements, of any shape.
tile.func @f(%b: i1) outputs 0 shapes [[]] grid [1] {
  %flags = tile.full %b : tensor<16x72xi1>
  %any = tile.any %flags : tensor<16x72xi1>
  %none = tile.full %b : tensor<0xi1>
  %no = tile.any %none {k} : tensor<0xi1>
  %one = tile.full %b : tensor<i1>
  %same = tile.any %one : tensor<i1>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%b: i1) outputs 0 shapes [[]] grid [1] {
// CHECK-NEXT:     %flags = tile.full %b : tensor<16x72xi1>
// CHECK-NEXT:     %any = tile.any %flags : tensor<16x72xi1>
// CHECK-NEXT:     %none = tile.full %b : tensor<0xi1>
// CHECK-NEXT:     %no = tile.any %none {k} : tensor<0xi1>
// CHECK-NEXT:     %one = tile.full %b : tensor<i1>
// CHECK-NEXT:     %same = tile.any %one : tensor<i1>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
