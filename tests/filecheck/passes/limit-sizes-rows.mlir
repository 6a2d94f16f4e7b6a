// RUN: tessera opt %s -p "limit-sizes{most=\"M=16\"}" | filecheck %s
// Functions say of their own symbols how large they are; of numbers and of what is computed they say nothing.
// CHECK{LITERAL}: tile.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[M, K]] grid [1] attributes {tile.most = {M = 16 : i64}}
// CHECK{LITERAL}: tile.func @g(%x: !tile.view<2, f32, global>) outputs 0 shapes [["2*M", 4]] grid [1] {
tile.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[M, K]] grid [1] {
  tile.return
}
tile.func @g(%x: !tile.view<2, f32, global>) outputs 0 shapes [["2*M", 4]] grid [1] {
  tile.return
}
