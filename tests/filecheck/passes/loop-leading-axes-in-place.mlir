// RUN: tessera opt %s -p loop-leading-axes | filecheck %s
// What is read must not change: the tile is read as a whole, and each iteration takes a part of it.
tile.func @f(%x: !tile.view<3, f32, global>) outputs 0 shapes [[2, 8, 16]] grid [1] {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %a = tile.load %x[%zero, %zero, %zero] : !tile.view<3, f32, global> -> tensor<2x8x16xf32>
  tile.store %a, %x[%one, %zero, %zero] : tensor<2x8x16xf32>, !tile.view<3, f32, global>
  tile.return
}

// CHECK{LITERAL}: tile.func @f(%x: !tile.view<3, f32, global>) outputs 0 shapes [[2, 8, 16]] grid [1] {
// CHECK: %a = tile.load %x[%zero, %zero, %zero] : !tile.view<3, f32, global> -> tensor<2x8x16xf32>
// CHECK: scf.for %3 = %2 to %1 step %0 {
// CHECK: %10 = tile.take %a[%5, %7, %9] : tensor<2x8x16xf32>, tensor<8x16xi64>, tensor<8x16xi64>, tensor<8x16xi64> -> tensor<8x16xf32>
// CHECK: %15 = tile.stride %x, 1 : !tile.view<3, f32, global>
// CHECK: %16 = tile.stride %x, 2 : !tile.view<3, f32, global>
// CHECK: %17 = tile.stride %x, 0 : !tile.view<3, f32, global>
// CHECK: %22 = tile.view %x offset %18 sizes[%21, %14] strides[%15, %16] {tile.part} : !tile.view<3, f32, global> -> !tile.view<2, f32, global>
// CHECK: tile.store %10, %22[%zero, %zero] : tensor<8x16xf32>, !tile.view<2, f32, global>
