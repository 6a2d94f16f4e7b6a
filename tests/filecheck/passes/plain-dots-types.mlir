// RUN: tessera opt %s -p plain-dots | filecheck %s
// RUN: tessera opt %s -p plain-dots{arch="sm_80"} | filecheck %s --check-prefix=OLD
// Tensor cores multiply bytes into 32 bits; 8-bit floats are multiplied as f16 where there is no instruction for them.
tile.func @f(%x: !tile.view<2, f8E4M3FN, global>, %n: !tile.view<2, i8, global>, %y: !tile.view<2, f32, global>, %z: !tile.view<2, i16, global>) outputs 2 shapes [[32, 32], [32, 32], [32, 32], [32, 32]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %none = arith.constant 0 : i16
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f8E4M3FN, global> -> tensor<32x32xf8E4M3FN>
  %clear = tile.full %nothing : tensor<32x32xf32>
  %floats = tile.dot %a, %a, %clear : tensor<32x32xf8E4M3FN>, tensor<32x32xf8E4M3FN>, tensor<32x32xf32> -> tensor<32x32xf32>
  %b = tile.load %n[%zero, %zero] : !tile.view<2, i8, global> -> tensor<32x32xi8>
  %empty = tile.full %none : tensor<32x32xi16>
  %numbers = tile.dot %b, %b, %empty : tensor<32x32xi8>, tensor<32x32xi8>, tensor<32x32xi16> -> tensor<32x32xi16>
  tile.store %floats, %y[%zero, %zero] : tensor<32x32xf32>, !tile.view<2, f32, global>
  tile.store %numbers, %z[%zero, %zero] : tensor<32x32xi16>, !tile.view<2, i16, global>
  tile.return
}

// CHECK:      %floats = tile.dot %a, %a, %clear : tensor<32x32xf8E4M3FN>
// CHECK:      %numbers = tile.ew<cast> %empty : tensor<32x32xi16> -> tensor<32x32xi32>
// CHECK-NEXT: %numbers_1 = tile.dot %b, %b, %numbers : tensor<32x32xi8>, tensor<32x32xi8>, tensor<32x32xi32> -> tensor<32x32xi32>
// CHECK-NEXT: %numbers_2 = tile.ew<cast> %numbers_1 : tensor<32x32xi32> -> tensor<32x32xi16>

// OLD:      %floats = tile.ew<cast> %a : tensor<32x32xf8E4M3FN> -> tensor<32x32xf16>
// OLD-NEXT: %floats_1 = tile.ew<cast> %a : tensor<32x32xf8E4M3FN> -> tensor<32x32xf16>
// OLD-NEXT: %floats_2 = tile.dot %floats, %floats_1, %clear : tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32> -> tensor<32x32xf32>
// OLD:      tile.dot %b, %b
