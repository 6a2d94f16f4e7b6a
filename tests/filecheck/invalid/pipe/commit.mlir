// expected: pipe.commit is a part of a tile function
pipe.commit
// -----
tile.func @f(%i: index) outputs 0 shapes [[]] grid [1] {
  // expected: cannot read IR
  pipe.commit %i : index
  tile.return
}
