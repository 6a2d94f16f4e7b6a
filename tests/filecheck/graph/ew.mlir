// RUN: tessera opt %s | filecheck %s
// One row of the table; the result's policy governs rounding, and stochastic rounding takes a seed.
graph.func @f(%x: !graph.tensor<["2*S + 1", B], f32>, %h: !graph.tensor<[4], bf16>, %e: !graph.tensor<[4], f8E4M3FN>, %n: !graph.tensor<[4], i4>, %u: !graph.tensor<[4], ui8>, %b: !graph.tensor<[4], i1>, %s: !graph.tensor<[], f64>, %z: !graph.tensor<[0], f32>) {
  %unary = graph.ew<exp> %x : !graph.tensor<["2*S + 1", B], f32> -> !graph.tensor<["2*S + 1", B], f32>
  %binary = graph.ew<add> %h, %h : !graph.tensor<[4], bf16>, !graph.tensor<[4], bf16> -> !graph.tensor<[4], bf16>
  %ternary = graph.ew<fma> %s, %s, %s : !graph.tensor<[], f64>, !graph.tensor<[], f64>, !graph.tensor<[], f64> -> !graph.tensor<[], f64>
  %compare = graph.ew<lt> %n, %n : !graph.tensor<[4], i4>, !graph.tensor<[4], i4> -> !graph.tensor<[4], i1>
  %select = graph.ew<select> %b, %u, %u : !graph.tensor<[4], i1>, !graph.tensor<[4], ui8>, !graph.tensor<[4], ui8> -> !graph.tensor<[4], ui8>
  %logic = graph.ew<and> %b, %b : !graph.tensor<[4], i1>, !graph.tensor<[4], i1> -> !graph.tensor<[4], i1>
  %cast = graph.ew<cast> %e : !graph.tensor<[4], f8E4M3FN> -> !graph.tensor<[4], f16>
  %saturating = graph.ew<cast> %h : !graph.tensor<[4], bf16> -> !graph.tensor<[4], i8, saturate>
  %stochastic = graph.ew<cast> %x seed 7 : !graph.tensor<["2*S + 1", B], f32> -> !graph.tensor<["2*S + 1", B], bf16, stochastic_round>
  %negative_seed = graph.ew<cast> %x seed -1 {k} : !graph.tensor<["2*S + 1", B], f32> -> !graph.tensor<["2*S + 1", B], bf16, accum(f32), stochastic_round>
  %empty = graph.ew<neg> %z : !graph.tensor<[0], f32> -> !graph.tensor<[0], f32>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<["2*S + 1", B], f32>, %h: !graph.tensor<[4], bf16>, %e: !graph.tensor<[4], f8E4M3FN>, %n: !graph.tensor<[4], i4>, %u: !graph.tensor<[4], ui8>, %b: !graph.tensor<[4], i1>, %s: !graph.tensor<[], f64>, %z: !graph.tensor<[0], f32>) {
// CHECK-NEXT:     %unary = graph.ew<exp> %x : !graph.tensor<["2*S + 1", B], f32> -> !graph.tensor<["2*S + 1", B], f32>
// CHECK-NEXT:     %binary = graph.ew<add> %h, %h : !graph.tensor<[4], bf16>, !graph.tensor<[4], bf16> -> !graph.tensor<[4], bf16>
// CHECK-NEXT:     %ternary = graph.ew<fma> %s, %s, %s : !graph.tensor<[], f64>, !graph.tensor<[], f64>, !graph.tensor<[], f64> -> !graph.tensor<[], f64>
// CHECK-NEXT:     %compare = graph.ew<lt> %n, %n : !graph.tensor<[4], i4>, !graph.tensor<[4], i4> -> !graph.tensor<[4], i1>
// CHECK-NEXT:     %select = graph.ew<select> %b, %u, %u : !graph.tensor<[4], i1>, !graph.tensor<[4], ui8>, !graph.tensor<[4], ui8> -> !graph.tensor<[4], ui8>
// CHECK-NEXT:     %logic = graph.ew<and> %b, %b : !graph.tensor<[4], i1>, !graph.tensor<[4], i1> -> !graph.tensor<[4], i1>
// CHECK-NEXT:     %cast = graph.ew<cast> %e : !graph.tensor<[4], f8E4M3FN> -> !graph.tensor<[4], f16>
// CHECK-NEXT:     %saturating = graph.ew<cast> %h : !graph.tensor<[4], bf16> -> !graph.tensor<[4], i8, saturate>
// CHECK-NEXT:     %stochastic = graph.ew<cast> %x seed 7 : !graph.tensor<["2*S + 1", B], f32> -> !graph.tensor<["2*S + 1", B], bf16, stochastic_round>
// CHECK-NEXT:     %negative_seed = graph.ew<cast> %x seed -1 {k} : !graph.tensor<["2*S + 1", B], f32> -> !graph.tensor<["2*S + 1", B], bf16, accum(f32), stochastic_round>
// CHECK-NEXT:     %empty = graph.ew<neg> %z : !graph.tensor<[0], f32> -> !graph.tensor<[0], f32>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
