// RUN: tessera opt %s -p graph-to-schedule --level schedule | filecheck %s
// The epilogue of one product reads what another one gives, with rows merged from two axes, as gradients of layers do: that other one comes first.
// The second product's epilogue reads what the first product gives, rows of both are merged from two axes.
// Every backward graph of a layer has this form. With rows as one axis ([192, 64]) it compiles.
graph.func @f(%x: !graph.tensor<[2, 96, 64], f32>, %w1: !graph.tensor<[64, 256], f32>, %w2: !graph.tensor<[256, 64], f32>, %w3: !graph.tensor<[64, 256], f32>, %ct: !graph.tensor<[2, 96, 64], f32>) -> (!graph.tensor<[2, 96, 64], f32>, !graph.tensor<[2, 96, 256], f32>) {
  %p = graph.matmul %x, %w1 : !graph.tensor<[2, 96, 64], f32>, !graph.tensor<[64, 256], f32> -> !graph.tensor<[2, 96, 256], f32>
  %e = graph.ew<tanh> %p : !graph.tensor<[2, 96, 256], f32> -> !graph.tensor<[2, 96, 256], f32>
  %y = graph.matmul %e, %w2 : !graph.tensor<[2, 96, 256], f32>, !graph.tensor<[256, 64], f32> -> !graph.tensor<[2, 96, 64], f32>
  %d = graph.matmul %ct, %w3 : !graph.tensor<[2, 96, 64], f32>, !graph.tensor<[64, 256], f32> -> !graph.tensor<[2, 96, 256], f32>
  %g = graph.ew<mul> %d, %p : !graph.tensor<[2, 96, 256], f32>, !graph.tensor<[2, 96, 256], f32> -> !graph.tensor<[2, 96, 256], f32>
  graph.return %y, %g : !graph.tensor<[2, 96, 64], f32>, !graph.tensor<[2, 96, 256], f32>
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f(%x: !graph.tensor<[2, 96, 64], f32>, %w1: !graph.tensor<[64, 256], f32>, %w2: !graph.tensor<[256, 64], f32>, %w3: !graph.tensor<[64, 256], f32>, %ct: !graph.tensor<[2, 96, 64], f32>) -> (!graph.tensor<[2, 96, 64], f32>, !graph.tensor<[2, 96, 256], f32>) {
// CHECK-NEXT:     %0 = graph.reshape %ct : !graph.tensor<[2, 96, 64], f32> -> !graph.tensor<[192, 64], f32>
// CHECK-NEXT:     %d = schedule.region<matmul> <> (%1 : !graph.tensor<[192, 64], f32> = %0, %w3_1 : !graph.tensor<[64, 256], f32> = %w3) -> (!graph.tensor<[192, 256], f32>) {
// CHECK-NEXT:       %d_1 = graph.matmul %1, %w3_1 : !graph.tensor<[192, 64], f32>, !graph.tensor<[64, 256], f32> -> !graph.tensor<[192, 256], f32>
// CHECK-NEXT:       schedule.yield %d_1 : !graph.tensor<[192, 256], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %d_1 = graph.reshape %d : !graph.tensor<[192, 256], f32> -> !graph.tensor<[2, 96, 256], f32>
// CHECK-NEXT:     %1 = graph.reshape %x : !graph.tensor<[2, 96, 64], f32> -> !graph.tensor<[192, 64], f32>
// CHECK-NEXT:     %2 = graph.reshape %d_1 : !graph.tensor<[2, 96, 256], f32> -> !graph.tensor<[192, 256], f32>
// CHECK-NEXT:     %e, %g = schedule.region<matmul> <> (%3 : !graph.tensor<[192, 64], f32> = %1, %w1_1 : !graph.tensor<[64, 256], f32> = %w1, %4 : !graph.tensor<[192, 256], f32> = %2) -> (!graph.tensor<[192, 256], f32>, !graph.tensor<[192, 256], f32>) {
// CHECK-NEXT:       %p = graph.matmul %3, %w1_1 : !graph.tensor<[192, 64], f32>, !graph.tensor<[64, 256], f32> -> !graph.tensor<[192, 256], f32>
// CHECK-NEXT:       %e_1 = graph.ew<tanh> %p : !graph.tensor<[192, 256], f32> -> !graph.tensor<[192, 256], f32>
// CHECK-NEXT:       %g_1 = graph.ew<mul> %4, %p : !graph.tensor<[192, 256], f32>, !graph.tensor<[192, 256], f32> -> !graph.tensor<[192, 256], f32>
// CHECK-NEXT:       schedule.yield %e_1, %g_1 : !graph.tensor<[192, 256], f32>, !graph.tensor<[192, 256], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %g_1 = graph.reshape %g : !graph.tensor<[192, 256], f32> -> !graph.tensor<[2, 96, 256], f32>
// CHECK-NEXT:     %y = schedule.region<matmul> <> (%e_1 : !graph.tensor<[192, 256], f32> = %e, %w2_1 : !graph.tensor<[256, 64], f32> = %w2) -> (!graph.tensor<[192, 64], f32>) {
// CHECK-NEXT:       %y_1 = graph.matmul %e_1, %w2_1 : !graph.tensor<[192, 256], f32>, !graph.tensor<[256, 64], f32> -> !graph.tensor<[192, 64], f32>
// CHECK-NEXT:       schedule.yield %y_1 : !graph.tensor<[192, 64], f32>
// CHECK-NEXT:     }
// CHECK-NEXT:     %y_1 = graph.reshape %y : !graph.tensor<[192, 64], f32> -> !graph.tensor<[2, 96, 64], f32>
// CHECK-NEXT:     graph.return %y_1, %g_1 : !graph.tensor<[2, 96, 64], f32>, !graph.tensor<[2, 96, 256], f32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
