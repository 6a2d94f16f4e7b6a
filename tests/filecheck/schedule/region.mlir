// RUN: tessera opt %s | filecheck %s
// Arguments are bound to values of the function; there may be none, and any number of results.
graph.func @f(%x: !graph.tensor<["2*S + 1"], bf16>, %s: !graph.tensor<[], i4>) {
  %a = schedule.region<pointwise> <block = [64]> (%u : !graph.tensor<["2*S + 1"], bf16> = %x) -> (!graph.tensor<["2*S + 1"], bf16>) {
    %e = graph.ew<exp> %u : !graph.tensor<["2*S + 1"], bf16> -> !graph.tensor<["2*S + 1"], bf16>
    schedule.yield %e : !graph.tensor<["2*S + 1"], bf16>
  }
  %b, %c = schedule.region<pointwise> <block = [], warps = 4, stages = 2, vector = 8, swizzle = "xor"> (%u : !graph.tensor<["2*S + 1"], bf16> = %a, %v : !graph.tensor<[], i4> = %s) -> (!graph.tensor<["2*S + 1"], bf16>, !graph.tensor<[], i4>) attributes {k} {
    schedule.yield %u, %v : !graph.tensor<["2*S + 1"], bf16>, !graph.tensor<[], i4>
  }
  %d = schedule.region<pointwise> <> () -> (!graph.tensor<[0], ui8>) {
    %i = graph.iota 0 : !graph.tensor<[0], ui8>
    schedule.yield %i : !graph.tensor<[0], ui8>
  }
  schedule.region<pointwise> <> () -> () {
    schedule.yield :
  }
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<["2*S + 1"], bf16>, %s: !graph.tensor<[], i4>) {
// CHECK-NEXT:     %a = schedule.region<pointwise> <block = [64]> (%u : !graph.tensor<["2*S + 1"], bf16> = %x) -> (!graph.tensor<["2*S + 1"], bf16>) {
// CHECK-NEXT:       %e = graph.ew<exp> %u : !graph.tensor<["2*S + 1"], bf16> -> !graph.tensor<["2*S + 1"], bf16>
// CHECK-NEXT:       schedule.yield %e : !graph.tensor<["2*S + 1"], bf16>
// CHECK-NEXT:     }
// CHECK-NEXT:     %b, %c = schedule.region<pointwise> <block = [], warps = 4, stages = 2, vector = 8, swizzle = "xor"> (%u : !graph.tensor<["2*S + 1"], bf16> = %a, %v : !graph.tensor<[], i4> = %s) -> (!graph.tensor<["2*S + 1"], bf16>, !graph.tensor<[], i4>) attributes {k} {
// CHECK-NEXT:       schedule.yield %u, %v : !graph.tensor<["2*S + 1"], bf16>, !graph.tensor<[], i4>
// CHECK-NEXT:     }
// CHECK-NEXT:     %d = schedule.region<pointwise> <> () -> (!graph.tensor<[0], ui8>) {
// CHECK-NEXT:       %i = graph.iota 0 : !graph.tensor<[0], ui8>
// CHECK-NEXT:       schedule.yield %i : !graph.tensor<[0], ui8>
// CHECK-NEXT:     }
// CHECK-NEXT:     schedule.region<pointwise> <> () -> () {
// CHECK-NEXT:       schedule.yield :
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
