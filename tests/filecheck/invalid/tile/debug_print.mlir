tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [1] {
  // expected: a view cannot be printed: load a tile from it
  tile.debug_print "x", %x : !tile.view<1, f32, global>
  tile.return
}
// -----
tile.func @f(%n: index) outputs 0 shapes [[]] grid [1] {
  // expected: property 'label' expected in operation 'tile.debug_print'
  "tile.debug_print"(%n) : (index) -> ()
  tile.return
}
// -----
tile.func @f(%n: index) outputs 0 shapes [[]] grid [1] {
  // expected: expected 0 operand types but had 1
  tile.debug_print "n", %n
  tile.return
}
// -----
tile.func @f(%n: index) outputs 0 shapes [[]] grid [1] {
  // expected: attribute expected
  tile.debug_print n, %n : index
  tile.return
}
