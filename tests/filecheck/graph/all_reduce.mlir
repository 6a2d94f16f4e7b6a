// RUN: tessera opt %s | filecheck %s
// Any reduction along any mesh axis; the type stays.
graph.func @f(%x: !graph.tensor<["2*S + 1"], bf16, accum(f32)>, %b: !graph.tensor<[], i1>, %u: !graph.tensor<[0], ui8>) effects ["collective(data)", "collective(tensor parallel)"] {
  %sum = graph.all_reduce<sum> %x over "data" : !graph.tensor<["2*S + 1"], bf16, accum(f32)> -> !graph.tensor<["2*S + 1"], bf16, accum(f32)>
  %max = graph.all_reduce<max> %x over "tensor parallel" : !graph.tensor<["2*S + 1"], bf16, accum(f32)> -> !graph.tensor<["2*S + 1"], bf16, accum(f32)>
  %and = graph.all_reduce<and> %b over "data" {k} : !graph.tensor<[], i1> -> !graph.tensor<[], i1>
  %xor = graph.all_reduce<xor> %u over "data" : !graph.tensor<[0], ui8> -> !graph.tensor<[0], ui8>
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<["2*S + 1"], bf16, accum(f32)>, %b: !graph.tensor<[], i1>, %u: !graph.tensor<[0], ui8>) effects ["collective(data)", "collective(tensor parallel)"] {
// CHECK-NEXT:     %sum = graph.all_reduce<sum> %x over "data" : !graph.tensor<["2*S + 1"], bf16, accum(f32)> -> !graph.tensor<["2*S + 1"], bf16, accum(f32)>
// CHECK-NEXT:     %max = graph.all_reduce<max> %x over "tensor parallel" : !graph.tensor<["2*S + 1"], bf16, accum(f32)> -> !graph.tensor<["2*S + 1"], bf16, accum(f32)>
// CHECK-NEXT:     %and = graph.all_reduce<and> %b over "data" {k} : !graph.tensor<[], i1> -> !graph.tensor<[], i1>
// CHECK-NEXT:     %xor = graph.all_reduce<xor> %u over "data" : !graph.tensor<[0], ui8> -> !graph.tensor<[0], ui8>
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
