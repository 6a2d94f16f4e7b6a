// RUN: tessera opt %s | filecheck %s
// A tile of any constant sizes; outside the view there is `pad`, which may be any float64.
tile.func @f(%x: !tile.view<2, f32, global>, %h: !tile.view<1, bf16, shared>, %e: !tile.view<1, f8E4M3FN, global>, %n: !tile.view<1, i4, global>, %u: !tile.view<1, ui8, global>, %b: !tile.view<1, i1, global>, %s: !tile.view<0, f64, global>) outputs 0 shapes [[M, "2*N + 1"], [N], [N], [N], [N], [N], []] grid [1] {
  %i = arith.constant 3 : index
  %plain = tile.load %x[%i, %i] : !tile.view<2, f32, global> -> tensor<16x72xf32>
  %zero = tile.load %x[%i, %i] pad 0.0 : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %negative_zero = tile.load %x[%i, %i] pad -0.0 : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %lowest = tile.load %x[%i, %i] pad -inf : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %highest = tile.load %x[%i, %i] pad inf : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %nan = tile.load %x[%i, %i] pad nan : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %nan_bits = tile.load %x[%i, %i] pad 0x7ff8000000000001 : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %tenth = tile.load %x[%i, %i] pad 0.1 : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %next_double = tile.load %x[%i, %i] pad 0.10000000000000002 : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %large = tile.load %x[%i, %i] pad 1.0e22 : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %whole = tile.load %x[%i, %i] pad 1 {k} : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %hinted = tile.load %x[%i, %i] {tile.hints = #tile.hints<memory = smem, vector = 8, prefetch = 2>} : !tile.view<2, f32, global> -> tensor<1x1xf32>
  %bf16 = tile.load %h[%i] : !tile.view<1, bf16, shared> -> tensor<80xbf16>
  %f8 = tile.load %e[%i] pad 448.0 : !tile.view<1, f8E4M3FN, global> -> tensor<80xf8E4M3FN>
  %i4 = tile.load %n[%i] pad -8.0 : !tile.view<1, i4, global> -> tensor<80xi4>
  %ui8 = tile.load %u[%i] pad 255.0 : !tile.view<1, ui8, global> -> tensor<80xui8>
  %i1 = tile.load %b[%i] pad 1.0 : !tile.view<1, i1, global> -> tensor<80xi1>
  %empty = tile.load %h[%i] : !tile.view<1, bf16, shared> -> tensor<0xbf16>
  %scalar = tile.load %s[] : !tile.view<0, f64, global> -> tensor<f64>
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT{LITERAL}:   tile.func @f(%x: !tile.view<2, f32, global>, %h: !tile.view<1, bf16, shared>, %e: !tile.view<1, f8E4M3FN, global>, %n: !tile.view<1, i4, global>, %u: !tile.view<1, ui8, global>, %b: !tile.view<1, i1, global>, %s: !tile.view<0, f64, global>) outputs 0 shapes [[M, "2*N + 1"], [N], [N], [N], [N], [N], []] grid [1] {
// CHECK-NEXT:     %i = arith.constant 3 : index
// CHECK-NEXT:     %plain = tile.load %x[%i, %i] : !tile.view<2, f32, global> -> tensor<16x72xf32>
// CHECK-NEXT:     %zero = tile.load %x[%i, %i] pad 0.0 : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %negative_zero = tile.load %x[%i, %i] pad -0.0 : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %lowest = tile.load %x[%i, %i] pad -inf : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %highest = tile.load %x[%i, %i] pad inf : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %nan = tile.load %x[%i, %i] pad nan : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %nan_bits = tile.load %x[%i, %i] pad 0x7ff8000000000001 : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %tenth = tile.load %x[%i, %i] pad 0.1 : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %next_double = tile.load %x[%i, %i] pad 0.10000000000000002 : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %large = tile.load %x[%i, %i] pad 1.0e+22 : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %whole = tile.load %x[%i, %i] pad 1.0 {k} : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %hinted = tile.load %x[%i, %i] {tile.hints = #tile.hints<memory = smem, vector = 8, prefetch = 2>} : !tile.view<2, f32, global> -> tensor<1x1xf32>
// CHECK-NEXT:     %bf16 = tile.load %h[%i] : !tile.view<1, bf16, shared> -> tensor<80xbf16>
// CHECK-NEXT:     %f8 = tile.load %e[%i] pad 448.0 : !tile.view<1, f8E4M3FN, global> -> tensor<80xf8E4M3FN>
// CHECK-NEXT:     %i4 = tile.load %n[%i] pad -8.0 : !tile.view<1, i4, global> -> tensor<80xi4>
// CHECK-NEXT:     %ui8 = tile.load %u[%i] pad 255.0 : !tile.view<1, ui8, global> -> tensor<80xui8>
// CHECK-NEXT:     %i1 = tile.load %b[%i] pad 1.0 : !tile.view<1, i1, global> -> tensor<80xi1>
// CHECK-NEXT:     %empty = tile.load %h[%i] : !tile.view<1, bf16, shared> -> tensor<0xbf16>
// CHECK-NEXT:     %scalar = tile.load %s[] : !tile.view<0, f64, global> -> tensor<f64>
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
