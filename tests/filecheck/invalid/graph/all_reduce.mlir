graph.func @f(%x: !graph.tensor<[4], f32>) effects ["collective(data)"] {
  // expected: all_reduce keeps the type: !graph.tensor<[4], f32> became !graph.tensor<[4], f64>
  %y = graph.all_reduce<sum> %x over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f64>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) effects ["collective(data)"] {
  // expected: unknown reduction mean
  %y = graph.all_reduce<mean> %x over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) effects ["collective(data)"] {
  // expected: xor reduces bool or int or uint elements, got f32
  %y = graph.all_reduce<xor> %x over "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) effects ["collective(data)"] {
  // expected: unit should be of base attribute string
  %y = graph.all_reduce<sum> %x over unit : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) effects ["collective(data)"] {
  // expected: Expected 'over'
  %y = graph.all_reduce<sum> %x along "data" : !graph.tensor<[4], f32> -> !graph.tensor<[4], f32>
  graph.return
}
