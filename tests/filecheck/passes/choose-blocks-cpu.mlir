// RUN: tessera opt %s -p "choose-blocks{target=cpu level=amx}" --level schedule | filecheck %s
// A block that is given stays.
graph.func @f(%x: !graph.tensor<[M, 2048], bf16>, %w: !graph.tensor<[2048, 300], bf16>) -> (!graph.tensor<[M, 300], bf16>, !graph.tensor<[M, 300], bf16>) {
  %y = schedule.region<matmul> <> (%a : !graph.tensor<[M, 2048], bf16> = %x, %b : !graph.tensor<[2048, 300], bf16> = %w) -> (!graph.tensor<[M, 300], bf16>) {
    %r = graph.matmul %a, %b : !graph.tensor<[M, 2048], bf16>, !graph.tensor<[2048, 300], bf16> -> !graph.tensor<[M, 300], bf16>
    schedule.yield %r : !graph.tensor<[M, 300], bf16>
  }
  %z = schedule.region<matmul> <block = [8, 16, 32]> (%a : !graph.tensor<[M, 2048], bf16> = %x, %b : !graph.tensor<[2048, 300], bf16> = %w) -> (!graph.tensor<[M, 300], bf16>) {
    %r = graph.matmul %a, %b : !graph.tensor<[M, 2048], bf16>, !graph.tensor<[2048, 300], bf16> -> !graph.tensor<[M, 300], bf16>
    schedule.yield %r : !graph.tensor<[M, 300], bf16>
  }
  graph.return %y, %z : !graph.tensor<[M, 300], bf16>, !graph.tensor<[M, 300], bf16>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[M, 2048], bf16>, %w: !graph.tensor<[2048, 300], bf16>) -> (!graph.tensor<[M, 300], bf16>, !graph.tensor<[M, 300], bf16>) {
// CHECK-NEXT:     %y = schedule.region<matmul> <block = [32, 304, 1024]> (%a : !graph.tensor<[M, 2048], bf16> = %x, %b : !graph.tensor<[2048, 300], bf16> = %w) -> (!graph.tensor<[M, 300], bf16>) {
// CHECK-NEXT:       %r = graph.matmul %a, %b : !graph.tensor<[M, 2048], bf16>, !graph.tensor<[2048, 300], bf16> -> !graph.tensor<[M, 300], bf16>
// CHECK-NEXT:       schedule.yield %r : !graph.tensor<[M, 300], bf16>
// CHECK-NEXT:     }
// CHECK-NEXT:     %z = schedule.region<matmul> <block = [8, 16, 32]> (%a : !graph.tensor<[M, 2048], bf16> = %x, %b : !graph.tensor<[2048, 300], bf16> = %w) -> (!graph.tensor<[M, 300], bf16>) {
// CHECK-NEXT:       %r = graph.matmul %a, %b : !graph.tensor<[M, 2048], bf16>, !graph.tensor<[2048, 300], bf16> -> !graph.tensor<[M, 300], bf16>
// CHECK-NEXT:       schedule.yield %r : !graph.tensor<[M, 300], bf16>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %y, %z : !graph.tensor<[M, 300], bf16>, !graph.tensor<[M, 300], bf16>
// CHECK-NEXT:   }
// CHECK-NEXT: }
