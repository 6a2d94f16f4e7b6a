// RUN: tessera opt %s -p tile-to-cpu{level=avx2} | filecheck %s
// What round-multiples has marked is rounded at this level, too.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[32], [32]] grid [1] {
  %zero = arith.constant 0 : index
  %a = tile.load %x[%zero] : !tile.view<1, f32, global> -> tensor<32xf32>
  %b = tile.ew<mul> %a, %a {rounded} : tensor<32xf32>, tensor<32xf32> -> tensor<32xf32>
  %c = tile.ew<add> %b, %a : tensor<32xf32>, tensor<32xf32> -> tensor<32xf32>
  %d = tile.ew<mul> %c, %c : tensor<32xf32>, tensor<32xf32> -> tensor<32xf32>
  tile.store %d, %y[%zero] : tensor<32xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:     tile.ew<mul> {{%.+}}, {{%.+}} {rounded} : tensor<
// CHECK:     tile.ew<add>
// CHECK:     tile.ew<mul> {{%.+}}, {{%.+}} : tensor<
