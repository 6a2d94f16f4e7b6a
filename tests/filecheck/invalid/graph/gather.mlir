graph.func @f(%x: !graph.tensor<[4], f32>, %i: !graph.tensor<[2], i32>) {
  // expected: axis 1 is out of range for rank 1
  %y = graph.gather %x[%i], [1] : !graph.tensor<[4], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[2], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) {
  // expected: indices are integers, got f32
  %y = graph.gather %x[%x], [0] : !graph.tensor<[4], f32>, !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>, %i: !graph.tensor<[2], i32>) {
  // expected: gathering gives !graph.tensor<[2], f32>, not !graph.tensor<[4], f32>
  %y = graph.gather %x[%i], [0] : !graph.tensor<[4], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>, %i: !graph.tensor<[2], i32>) {
  // expected: gathering gives elements of f32, not f16
  %y = graph.gather %x[%i], [0] : !graph.tensor<[4], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[2], f16>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>, %i: !graph.tensor<[2], i32>) {
  // expected: Expected '['
  %y = graph.gather %x, %i, 0 : !graph.tensor<[4], f32>, !graph.tensor<[2], i32> -> !graph.tensor<[2], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, 5], f32>, %i: !graph.tensor<[2], i32>) {
  // expected: each axis, in order, has indices: 2 of them for axes [1, 0]
  %y = graph.gather %x[%i, %i], [1, 0] : !graph.tensor<[4, 5], f32>, !graph.tensor<[2], i32>, !graph.tensor<[2], i32> -> !graph.tensor<[2], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4, 5], f32>, %i: !graph.tensor<[2], i32>, %j: !graph.tensor<[3], i32>) {
  // expected: indices have one shape, got !graph.tensor<[2], i32> and !graph.tensor<[3], i32>
  %y = graph.gather %x[%i, %j], [0, 1] : !graph.tensor<[4, 5], f32>, !graph.tensor<[2], i32>, !graph.tensor<[3], i32> -> !graph.tensor<[2], f32>
  graph.return
}
