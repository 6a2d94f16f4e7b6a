// RUN: tessera opt %s | filecheck %s
// One number per element, or one for all; floats by their shortest decimal, what is not finite by its bits.
graph.func @f(%sizes: !graph.tensor<[S, B], i1>) {
  %f32 = graph.constant !graph.tensor<[3], f32> = [1, -0.0, 1.0e22]
  %f32_special = graph.constant !graph.tensor<[4], f32> = [0x7f800000, 0xff800000, 0x7fc00000, 0x7fc00001]
  %f64 = graph.constant !graph.tensor<[2], f64> = [0.1, 0.10000000000000002]
  %tf32 = graph.constant !graph.tensor<[2], tf32> = [0.1, 0x7fc00000]
  %bf16 = graph.constant !graph.tensor<[2], bf16> = [0.1, 0x7fc1]
  %f16 = graph.constant !graph.tensor<[2], f16> = [65504.0, 0x7c00]
  %f8e4m3 = graph.constant !graph.tensor<[2], f8E4M3FN> = [448.0, 0x7f]
  %f8e5m2 = graph.constant !graph.tensor<[2], f8E5M2> = [57344.0, 0x7c]
  %f6e3m2 = graph.constant !graph.tensor<[2], f6E3M2FN> = [28.0, -0.0]
  %f6e2m3 = graph.constant !graph.tensor<[2], f6E2M3FN> = [7.5, 0.125]
  %f4e2m1 = graph.constant !graph.tensor<[2], f4E2M1FN> = [6.0, -0.5]
  %i64 = graph.constant !graph.tensor<[2], i64> = [-9223372036854775808, 9223372036854775807]
  %i4 = graph.constant !graph.tensor<[2], i4> = [-8, 7]
  %ui64 = graph.constant !graph.tensor<[1], ui64> = [18446744073709551615]
  %ui8 = graph.constant !graph.tensor<[2], ui8> = [255, 0]
  %ui4 = graph.constant !graph.tensor<[1], ui4> = [15]
  %i1 = graph.constant !graph.tensor<[2], i1> = [true, false]
  %rank0 = graph.constant !graph.tensor<[], f32> = [2.5]
  %empty = graph.constant !graph.tensor<[0, 3], f32> = []
  %fill = graph.constant !graph.tensor<[2, 3], f32> = [2.5]
  %symbolic = graph.constant !graph.tensor<["2*S + 1", B], bf16> = [0.5]
  %attributed = graph.constant {origin = "weights"} !graph.tensor<[1], i8> = [3]
  %policy = graph.constant !graph.tensor<[1], i8, saturate> = [3]
  %bytes = graph.constant !graph.tensor<[2], i16> = bytes "0100ffff"
  %long = graph.constant !graph.tensor<[65], i8> = bytes "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f4041"
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%sizes: !graph.tensor<[S, B], i1>) {
// CHECK-NEXT:     %f32 = graph.constant !graph.tensor<[3], f32> = [1.0, -0.0, 9.999999778196308e+21]
// CHECK-NEXT:     %f32_special = graph.constant !graph.tensor<[4], f32> = [0x7f800000, 0xff800000, 0x7fc00000, 0x7fc00001]
// CHECK-NEXT:     %f64 = graph.constant !graph.tensor<[2], f64> = [0.1, 0.10000000000000002]
// CHECK-NEXT:     %tf32 = graph.constant !graph.tensor<[2], tf32> = [0.0999755859375, 0x7fc00000]
// CHECK-NEXT:     %bf16 = graph.constant !graph.tensor<[2], bf16> = [0.10009765625, 0x7fc1]
// CHECK-NEXT:     %f16 = graph.constant !graph.tensor<[2], f16> = [65504.0, 0x7c00]
// CHECK-NEXT:     %f8e4m3 = graph.constant !graph.tensor<[2], f8E4M3FN> = [448.0, 0x7f]
// CHECK-NEXT:     %f8e5m2 = graph.constant !graph.tensor<[2], f8E5M2> = [57344.0, 0x7c]
// CHECK-NEXT:     %f6e3m2 = graph.constant !graph.tensor<[2], f6E3M2FN> = [28.0, -0.0]
// CHECK-NEXT:     %f6e2m3 = graph.constant !graph.tensor<[2], f6E2M3FN> = [7.5, 0.125]
// CHECK-NEXT:     %f4e2m1 = graph.constant !graph.tensor<[2], f4E2M1FN> = [6.0, -0.5]
// CHECK-NEXT:     %i64 = graph.constant !graph.tensor<[2], i64> = [-9223372036854775808, 9223372036854775807]
// CHECK-NEXT:     %i4 = graph.constant !graph.tensor<[2], i4> = [-8, 7]
// CHECK-NEXT:     %ui64 = graph.constant !graph.tensor<[1], ui64> = [18446744073709551615]
// CHECK-NEXT:     %ui8 = graph.constant !graph.tensor<[2], ui8> = [255, 0]
// CHECK-NEXT:     %ui4 = graph.constant !graph.tensor<[1], ui4> = [15]
// CHECK-NEXT:     %i1 = graph.constant !graph.tensor<[2], i1> = [true, false]
// CHECK-NEXT:     %rank0 = graph.constant !graph.tensor<[], f32> = [2.5]
// CHECK-NEXT:     %empty = graph.constant !graph.tensor<[0, 3], f32> = []
// CHECK-NEXT:     %fill = graph.constant !graph.tensor<[2, 3], f32> = [2.5]
// CHECK-NEXT:     %symbolic = graph.constant !graph.tensor<["2*S + 1", B], bf16> = [0.5]
// CHECK-NEXT:     %attributed = graph.constant {origin = "weights"} !graph.tensor<[1], i8> = [3]
// CHECK-NEXT:     %policy = graph.constant !graph.tensor<[1], i8, saturate> = [3]
// CHECK-NEXT:     %bytes = graph.constant !graph.tensor<[2], i16> = [1, -1]
// CHECK-NEXT:     %long = graph.constant !graph.tensor<[65], i8> = bytes "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f4041"
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
