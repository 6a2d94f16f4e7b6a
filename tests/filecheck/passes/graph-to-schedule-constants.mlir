// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// One number that fills a tensor is copied into the kernel; data is passed to it.
graph.func @f(%x: !graph.tensor<[3], f32>, %u: !graph.tensor<[3], ui8>) -> (!graph.tensor<[3], f32>, !graph.tensor<[3], ui8>, !graph.tensor<[3], f32>) {
  %two = graph.constant !graph.tensor<[3], f32> = [2.0]
  %data = graph.constant !graph.tensor<[3], f32> = [1.0, 2.0, 3.0]
  %byte = graph.constant !graph.tensor<[3], ui8> = [7]
  %returned = graph.constant !graph.tensor<[3], f32> = [5.0]
  %a = graph.ew<fma> %x, %two, %data : !graph.tensor<[3], f32>, !graph.tensor<[3], f32>, !graph.tensor<[3], f32> -> !graph.tensor<[3], f32>
  %b = graph.ew<add> %u, %byte : !graph.tensor<[3], ui8>, !graph.tensor<[3], ui8> -> !graph.tensor<[3], ui8>
  graph.return %a, %b, %returned : !graph.tensor<[3], f32>, !graph.tensor<[3], ui8>, !graph.tensor<[3], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[3], f32>, %u: !graph.tensor<[3], ui8>) -> (!graph.tensor<[3], f32>, !graph.tensor<[3], ui8>, !graph.tensor<[3], f32>) {
// CHECK-NEXT:     %data = graph.constant !graph.tensor<[3], f32> = [1.0, 2.0, 3.0]
// CHECK-NEXT:     %returned = graph.constant !graph.tensor<[3], f32> = [5.0]
// CHECK-NEXT:     %a = schedule.region<pointwise> <block = [3]> (%x_1 : !graph.tensor<[3], f32> = %x, %data_1 : !graph.tensor<[3], f32> = %data) -> (!graph.tensor<[3], f32>) {
// CHECK-NEXT:       %two = graph.constant !graph.tensor<[3], f32> = [2.0]
// CHECK-NEXT:       %a_1 = graph.ew<fma> %x_1, %two, %data_1 : !graph.tensor<[3], f32>, !graph.tensor<[3], f32>, !graph.tensor<[3], f32> -> !graph.tensor<[3], f32>
// CHECK-NEXT:       schedule.yield %a_1 : !graph.tensor<[3], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %b = schedule.region<pointwise> <block = [3]> (%u_1 : !graph.tensor<[3], ui8> = %u) -> (!graph.tensor<[3], ui8>) {
// CHECK-NEXT:       %byte = graph.constant !graph.tensor<[3], ui8> = [7]
// CHECK-NEXT:       %b_1 = graph.ew<add> %u_1, %byte : !graph.tensor<[3], ui8>, !graph.tensor<[3], ui8> -> !graph.tensor<[3], ui8>
// CHECK-NEXT:       schedule.yield %b_1 : !graph.tensor<[3], ui8>
// CHECK-NEXT:     }
// CHECK-NEXT:     graph.return %a, %b, %returned : !graph.tensor<[3], f32>, !graph.tensor<[3], ui8>, !graph.tensor<[3], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
