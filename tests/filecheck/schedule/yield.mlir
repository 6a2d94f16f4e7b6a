// RUN: tessera opt %s | filecheck %s
// None, one or several values.
graph.func @f(%x: !graph.tensor<["2*S + 1"], bf16>, %s: !graph.tensor<[], i1>) {
  schedule.region<pointwise> <> () -> () {
    schedule.yield :
  }
  %a = schedule.region<pointwise> <> (%u : !graph.tensor<["2*S + 1"], bf16> = %x) -> (!graph.tensor<["2*S + 1"], bf16>) {
    schedule.yield %u {k} : !graph.tensor<["2*S + 1"], bf16>
  }
  %b, %c = schedule.region<pointwise> <> (%u : !graph.tensor<[], i1> = %s, %v : !graph.tensor<[], i1> = %s) -> (!graph.tensor<[], i1>, !graph.tensor<[], i1>) {
    schedule.yield %v, %u : !graph.tensor<[], i1>, !graph.tensor<[], i1>
  }
  graph.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<["2*S + 1"], bf16>, %s: !graph.tensor<[], i1>) {
// CHECK-NEXT:     schedule.region<pointwise> <> () -> () {
// CHECK-NEXT:       schedule.yield :
// CHECK-NEXT:     }
// CHECK-NEXT:     %a = schedule.region<pointwise> <> (%u : !graph.tensor<["2*S + 1"], bf16> = %x) -> (!graph.tensor<["2*S + 1"], bf16>) {
// CHECK-NEXT:       schedule.yield %u {k} : !graph.tensor<["2*S + 1"], bf16>
// CHECK-NEXT:     }
// CHECK-NEXT:     %b, %c = schedule.region<pointwise> <> (%u : !graph.tensor<[], i1> = %s, %v : !graph.tensor<[], i1> = %s) -> (!graph.tensor<[], i1>, !graph.tensor<[], i1>) {
// CHECK-NEXT:       schedule.yield %v, %u : !graph.tensor<[], i1>, !graph.tensor<[], i1>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
