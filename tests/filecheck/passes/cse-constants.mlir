// RUN: tessera opt %s -p cse | filecheck %s
// Constants are equal when their bits are: -0.0 is not 0.0, and NaNs keep their payload.
graph.func @f() -> (!graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>) {
  %zero = graph.constant !graph.tensor<[], f32> = [0.0]
  %again = graph.constant !graph.tensor<[], f32> = [0.0]
  %minus = graph.constant !graph.tensor<[], f32> = [-0.0]
  %nan = graph.constant !graph.tensor<[], f32> = [0x7fc00000]
  %other_nan = graph.constant !graph.tensor<[], f32> = [0x7fc00001]
  graph.return %zero, %again, %minus, %nan, %other_nan : !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>
}
tile.func @k() outputs 0 shapes [] grid [1] {
  %zero = arith.constant 0.0 : f32
  %again = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %wide = arith.constant 0.0 : f64
  tile.debug_print "0, 0, -0, 0", %zero, %again, %minus, %wide : f32, f32, f32, f64
  tile.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   graph.func @f() -> (!graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>) {
// CHECK-NEXT:     %zero = graph.constant !graph.tensor<[], f32> = [0.0]
// CHECK-NEXT:     %minus = graph.constant !graph.tensor<[], f32> = [-0.0]
// CHECK-NEXT:     %nan = graph.constant !graph.tensor<[], f32> = [0x7fc00000]
// CHECK-NEXT:     %other_nan = graph.constant !graph.tensor<[], f32> = [0x7fc00001]
// CHECK-NEXT:     graph.return %zero, %zero, %minus, %nan, %other_nan : !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>, !graph.tensor<[], f32>
// CHECK-NEXT:   }
// CHECK-NEXT:   tile.func @k() outputs 0 shapes [] grid [1] {
// CHECK-NEXT:     %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:     %minus = arith.constant -0.000000e+00 : f32
// CHECK-NEXT:     %wide = arith.constant 0.000000e+00 : f64
// CHECK-NEXT:     tile.debug_print "0, 0, -0, 0", %zero, %zero, %minus, %wide : f32, f32, f32, f64
// CHECK-NEXT:     tile.return
// CHECK-NEXT:   }
// CHECK-NEXT: }
