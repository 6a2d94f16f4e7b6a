graph.func @f(%x: f32) effects [io] {
  // expected: f32 should be of base attribute graph.tensor
  graph.print "x", %x : f32
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) effects [io] {
  // expected: 3 : i64 should be of base attribute string
  graph.print 3, %x : !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f() effects [io] {
  // expected: Expected 1 operand, but got 0
  "graph.print"() <{label = "x"}> : () -> ()
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) effects [io] {
  // expected: operand is used with type !graph.tensor<[5], f32>, but has been previously used or defined with type !graph.tensor<[4], f32>
  graph.print "x", %x : !graph.tensor<[5], f32>
  graph.return
}
// -----
// Bytes that are no text.
graph.func @f(%x: !graph.tensor<[4], f32>) effects [io] {
  // expected: "\FF" should be of base attribute string
  graph.print "\FF", %x : !graph.tensor<[4], f32>
  graph.return
}
// -----
graph.func @f(%x: !graph.tensor<[4], f32>) effects [io] {
  // expected: Expected ','
  graph.print "x" : !graph.tensor<[4], f32>
  graph.return
}
