// RUN: tessera opt %s | filecheck %s
// A flag, or a tile of flags; the message is any text.
tile.func @f(%flag: i1) outputs 0 shapes [[]] grid [1] {
  tile.assert %flag, "must hold" : i1
  %flags = tile.full %flag : tensor<16x72xi1>
  tile.assert %flags, "Größe \22x\22 stimmt nicht" {k} : tensor<16x72xi1>
  %none = tile.full %flag : tensor<0xi1>
  tile.assert %none, "" : tensor<0xi1>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%flag: i1) outputs 0 shapes [[]] grid [1] {
// CHECK-NEXT:     tile.assert %flag, "must hold" : i1
// CHECK-NEXT:     %flags = tile.full %flag : tensor<16x72xi1>
// CHECK-NEXT:     tile.assert %flags, "Gr\C3\B6\C3\9Fe \22x\22 stimmt nicht" {k} : tensor<16x72xi1>
// CHECK-NEXT:     %none = tile.full %flag : tensor<0xi1>
// CHECK-NEXT:     tile.assert %none, "" : tensor<0xi1>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
