// RUN: tessera opt %s | filecheck %s
// The last two axes multiply, leading ones broadcast; the result may be of another type of the same kind. In parts of the depth there is a matrix for each.
graph.func @f(%a: !graph.tensor<[M, "2*K + 1"], bf16, accum(f32)>, %b: !graph.tensor<["2*K + 1", N], bf16>, %c: !graph.tensor<[B, 1, 2, 3], i8>, %d: !graph.tensor<[H, 3, 4], i8>, %e: !graph.tensor<[2, 0], f8E4M3FN>, %f: !graph.tensor<[0, 2], f8E4M3FN>) {
  %plain = graph.matmul %a, %b : !graph.tensor<[M, "2*K + 1"], bf16, accum(f32)>, !graph.tensor<["2*K + 1", N], bf16> -> !graph.tensor<[M, N], bf16>
  %wide = graph.matmul %a, %b : !graph.tensor<[M, "2*K + 1"], bf16, accum(f32)>, !graph.tensor<["2*K + 1", N], bf16> -> !graph.tensor<[M, N], f32>
  %batched = graph.matmul %c, %d {k} : !graph.tensor<[B, 1, 2, 3], i8>, !graph.tensor<[H, 3, 4], i8> -> !graph.tensor<[B, H, 2, 4], i32>
  %nothing_summed = graph.matmul %e, %f : !graph.tensor<[2, 0], f8E4M3FN>, !graph.tensor<[0, 2], f8E4M3FN> -> !graph.tensor<[2, 2], f32>
  %parts = graph.matmul %a, %b parts 4 step 32 : !graph.tensor<[M, "2*K + 1"], bf16, accum(f32)>, !graph.tensor<["2*K + 1", N], bf16> -> !graph.tensor<[4, M, N], f32>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%a: !graph.tensor<[M, "2*K + 1"], bf16, accum(f32)>, %b: !graph.tensor<["2*K + 1", N], bf16>, %c: !graph.tensor<[B, 1, 2, 3], i8>, %d: !graph.tensor<[H, 3, 4], i8>, %e: !graph.tensor<[2, 0], f8E4M3FN>, %f: !graph.tensor<[0, 2], f8E4M3FN>) {
// CHECK-NEXT:     %plain = graph.matmul %a, %b : !graph.tensor<[M, "2*K + 1"], bf16, accum(f32)>, !graph.tensor<["2*K + 1", N], bf16> -> !graph.tensor<[M, N], bf16>
// CHECK-NEXT:     %wide = graph.matmul %a, %b : !graph.tensor<[M, "2*K + 1"], bf16, accum(f32)>, !graph.tensor<["2*K + 1", N], bf16> -> !graph.tensor<[M, N], f32>
// CHECK-NEXT:     %batched = graph.matmul %c, %d {k} : !graph.tensor<[B, 1, 2, 3], i8>, !graph.tensor<[H, 3, 4], i8> -> !graph.tensor<[B, H, 2, 4], i32>
// CHECK-NEXT:     %nothing_summed = graph.matmul %e, %f : !graph.tensor<[2, 0], f8E4M3FN>, !graph.tensor<[0, 2], f8E4M3FN> -> !graph.tensor<[2, 2], f32>
// CHECK-NEXT:     %parts = graph.matmul %a, %b parts 4 step 32 : !graph.tensor<[M, "2*K + 1"], bf16, accum(f32)>, !graph.tensor<["2*K + 1", N], bf16> -> !graph.tensor<[4, M, N], f32>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
