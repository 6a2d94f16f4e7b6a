// expected: 'graph.return' expects parent op 'graph.func'
graph.return
// -----
tile.func @f() outputs 0 shapes [] grid [] {
  // expected: 'graph.return' expects parent op 'graph.func'
  graph.return
}
// -----
graph.func @f() {
  // expected: 'graph.return' must be the last operation in its parent block
  graph.return
  graph.return
}
// -----
graph.func @f(%x: f32) -> (f32) {
  // expected: Expected ':'
  graph.return %x
}
// -----
graph.func @f(%x: f32) -> (f32, f32) {
  // expected: expected 1 operand types but had 2
  graph.return %x, %x : f32
}
