graph.func @f() {
  // expected: 12 bytes for 2 elements of 4 bytes each
  %c = graph.constant !graph.tensor<[2], f32> = [1.0, 2.0, 3.0]
  graph.return
}
// -----
graph.func @f() {
  // expected: 0 bytes for 2 elements of 4 bytes each
  %c = graph.constant !graph.tensor<[2], f32> = []
  graph.return
}
// -----
// Not even a whole number of elements.
graph.func @f() {
  // expected: 3 bytes for 2 elements of 4 bytes each
  %c = graph.constant !graph.tensor<[2], f32> = bytes "000000"
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[S], f32>) {
  // expected: a constant of !graph.tensor<[S], f32> needs constant sizes, or one element to fill it
  %c = graph.constant !graph.tensor<[S], f32> = [1.0, 2.0]
  graph.return
}
// -----
graph.func @f() {
  // expected: have bits set that i4 does not use
  %c = graph.constant !graph.tensor<[2], i4> = bytes "0ff0"
  graph.return
}
// -----
graph.func @f() {
  // expected: have bits set that bool does not use
  %c = graph.constant !graph.tensor<[1], i1> = bytes "02"
  graph.return
}
// -----
graph.func @f() {
  // expected: have bits set that tf32 does not use
  %c = graph.constant !graph.tensor<[1], tf32> = [0x3f800001]
  graph.return
}
// -----
graph.func @f() {
  // expected: expected hexadecimal bytes, got 'zz'
  %c = graph.constant !graph.tensor<[1], i8> = bytes "zz"
  graph.return
}
// -----
graph.func @f() {
  // expected: expected hexadecimal bytes, got '0'
  %c = "graph.constant"() <{value = #graph.dense<"0">}> : () -> !graph.tensor<[1], i8>
  graph.return
}
// -----
graph.func @f() {
  // expected: expected a value of i8, got 128
  %c = graph.constant !graph.tensor<[1], i8> = [128]
  graph.return
}
// -----
graph.func @f() {
  // expected: expected a value of u8, got -1
  %c = graph.constant !graph.tensor<[1], ui8> = [-1]
  graph.return
}
// -----
graph.func @f() {
  // expected: expected a value of i8, got 1.0
  %c = graph.constant !graph.tensor<[1], i8> = [1.0]
  graph.return
}
// -----
graph.func @f() {
  // expected: expected a value of f32, got more digits than it can hold
  %c = graph.constant !graph.tensor<[1], f32> = [0x100000000]
  graph.return
}
// -----
graph.func @f() {
  // expected: Expected boolean literal
  %c = graph.constant !graph.tensor<[1], i1> = [1]
  graph.return
}
// -----
graph.func @f() {
  // expected: integer or float literal expected
  %c = graph.constant !graph.tensor<[1], f32> = [true]
  graph.return
}
// -----
graph.func @f() {
  // expected: expected a graph tensor type, got tensor<4xf32>
  %c = graph.constant tensor<4xf32> = [1.0]
  graph.return
}
// -----
graph.func @f() {
  // expected: tensor<1xi8> should be of base attribute graph.tensor
  %c = "graph.constant"() <{value = #graph.dense<"00">}> : () -> tensor<1xi8>
  graph.return
}
// -----
graph.func @f() {
  // expected: Expected '='
  %c = graph.constant !graph.tensor<[1], f32> [1.0]
  graph.return
}
// -----
graph.func @f() {
  // expected: value is a property of graph.constant; an attribute may not have its name
  %c = graph.constant {value = 3 : i64} !graph.tensor<[1], f32> = [1.0]
  graph.return
}
