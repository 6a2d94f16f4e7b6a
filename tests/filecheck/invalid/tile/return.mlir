// expected: 'tile.return' expects parent op 'tile.func'
tile.return
// -----
graph.func @f() {
  // expected: 'tile.return' expects parent op 'tile.func'
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [] {
  // expected: 'tile.return' must be the last operation in its parent block
  tile.return
  tile.return
}
// -----
tile.func @f(%x: index) outputs 0 shapes [[]] grid [] {
  // expected: Expected 0 operands, but got 1
  "tile.return"(%x) : (index) -> ()
}
// -----
tile.func @f(%x: index) outputs 0 shapes [[]] grid [] {
  // expected: Expected SSA value tuple size
  tile.return %x : index
}
