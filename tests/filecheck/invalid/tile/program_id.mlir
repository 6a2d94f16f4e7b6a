// expected: program_id 1 in a grid of rank 1
tile.func @f() outputs 0 shapes [] grid [4] {
  %i = tile.program_id 1
  tile.return
}
// -----
// Also deep inside.
// expected: program_id 0 in a grid of rank 0
tile.func @f(%flag: i1) outputs 0 shapes [[]] grid [] {
  scf.if %flag {
    %i = tile.program_id 0
  }
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [4] {
  // expected: a grid axis is not negative, got -1
  %i = tile.program_id -1
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [4] {
  // expected: i32 should be of base attribute index
  %i = "tile.program_id"() <{axis = 0 : i64}> : () -> i32
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [4] {
  // expected: is out of range for type i64
  %i = tile.program_id 99999999999999999999
  tile.return
}
// -----
tile.func @f() outputs 0 shapes [] grid [4] {
  // expected: Expected integer literal
  %i = tile.program_id x
  tile.return
}
