// RUN: tessera opt %s | filecheck %s
// Every element type that a scalar can have; unsigned scalars come as arguments.
tile.func @f(%u: ui8, %v: ui4) outputs 0 shapes [[], []] grid [1] {
  %f32 = arith.constant 0.1 : f32
  %a = tile.full %f32 : tensor<16x72xf32>
  %bf16 = arith.constant 1.5 : bf16
  %b = tile.full %bf16 : tensor<3xbf16>
  %f8 = arith.constant 448.0 : f8E4M3FN
  %c = tile.full %f8 : tensor<3xf8E4M3FN>
  %i4 = arith.constant -8 : i4
  %d = tile.full %i4 {k} : tensor<3xi4>
  %i1 = arith.constant true
  %e = tile.full %i1 : tensor<3xi1>
  %index = arith.constant 3 : index
  %f = tile.full %index : tensor<3xindex>
  %g = tile.full %u : tensor<3xui8>
  %h = tile.full %v : tensor<3xui4>
  %scalar = tile.full %f32 : tensor<f32>
  %empty = tile.full %f32 : tensor<0x3xf32>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%u: ui8, %v: ui4) outputs 0 shapes [[], []] grid [1] {
// CHECK-NEXT:     %f32 = arith.constant 1.000000e-01 : f32
// CHECK-NEXT:     %a = tile.full %f32 : tensor<16x72xf32>
// CHECK-NEXT:     %bf16 = arith.constant 1.500000e+00 : bf16
// CHECK-NEXT:     %b = tile.full %bf16 : tensor<3xbf16>
// CHECK-NEXT:     %f8 = arith.constant 4.480000e+02 : f8E4M3FN
// CHECK-NEXT:     %c = tile.full %f8 : tensor<3xf8E4M3FN>
// CHECK-NEXT:     %i4 = arith.constant -8 : i4
// CHECK-NEXT:     %d = tile.full %i4 {k} : tensor<3xi4>
// CHECK-NEXT:     %i1 = arith.constant true
// CHECK-NEXT:     %e = tile.full %i1 : tensor<3xi1>
// CHECK-NEXT:     %index = arith.constant 3 : index
// CHECK-NEXT:     %f = tile.full %index : tensor<3xindex>
// CHECK-NEXT:     %g = tile.full %u : tensor<3xui8>
// CHECK-NEXT:     %h = tile.full %v : tensor<3xui4>
// CHECK-NEXT:     %scalar = tile.full %f32 : tensor<f32>
// CHECK-NEXT:     %empty = tile.full %f32 : tensor<0x3xf32>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
