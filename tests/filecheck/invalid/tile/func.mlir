// expected: a tile function ends with tile.return
tile.func @f() outputs 0 shapes [] grid [] {
}
// -----
// expected: outputs 2: the function has 1 arguments
tile.func @f(%x: !tile.view<1, f32, global>) outputs 2 shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: outputs -1: the function has 0 arguments
tile.func @f() outputs -1 shapes [] grid [1] {
  tile.return
}
// -----
// expected: 0 shapes for 1 arguments
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [] grid [1] {
  tile.return
}
// -----
// expected: output argument 1 must be a view, got index
tile.func @f(%x: !tile.view<1, f32, global>, %n: index) outputs 1 shapes [[N], []] grid [1] {
  tile.return
}
// -----
// expected: argument 0 must be a view or a scalar, got tensor<4xf32>
tile.func @f(%x: tensor<4xf32>) outputs 0 shapes [[]] grid [1] {
  tile.return
}
// -----
// expected: argument 0 must be a view or a scalar, got f80
tile.func @f(%x: f80) outputs 0 shapes [[]] grid [1] {
  tile.return
}
// -----
// expected: argument 0 has rank 2, its shape 1 sizes
tile.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: argument 0 has rank 0, its shape 1 sizes
tile.func @f(%n: index) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: no argument has the symbol K, M of the grid
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid ["M + K", N] {
  tile.return
}
// -----
// expected: the entry block takes f32 but the function type says i32
"tile.func"() <{sym_name = "f", function_type = (i32) -> (), outputs = 0 : i64, shapes = [#ts.sizes<[]>], grid = #ts.sizes<[]>}> ({
^bb0(%x: f32):
  tile.return
}) : () -> ()
// -----
// expected: expected a single block, but got 2 blocks
"tile.func"() <{sym_name = "f", function_type = () -> (), outputs = 0 : i64, shapes = [], grid = #ts.sizes<[]>}> ({
^bb0:
  tile.return
^bb1:
  tile.return
}) : () -> ()
// -----
// expected: Expected attribute i64 but got i32
"tile.func"() <{sym_name = "f", function_type = () -> (), outputs = 0 : i32, shapes = [], grid = #ts.sizes<[]>}> ({
  tile.return
}) : () -> ()
// -----
// Kernels do not call back into the graph, but only legality forbids it; values from outside never pass.
%x = arith.constant 1 : i32
// expected: Operation using value defined out of its IsolatedFromAbove parent
tile.func @f() outputs 0 shapes [] grid [] {
  %y = arith.addi %x, %x : i32
  tile.return
}
// -----
// A value of one branch is not defined in the other.
tile.func @f(%flag: i1) outputs 0 shapes [[]] grid [1] {
  scf.if %flag {
    %a = arith.constant 1 : index
  } else {
    // expected: values used but not defined: [%b]
    tile.debug_print "b", %b : index
  }
  tile.return
}
// -----
// expected: a view's rank is not negative, got -1
tile.func @f(%x: !tile.view<-1, f32, global>) outputs 0 shapes [[]] grid [1] {
  tile.return
}
// -----
// expected: f80 is not a Tessera element type
tile.func @f(%x: !tile.view<1, f80, global>) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: memory space cloud: expected one of global, shared, register
tile.func @f(%x: !tile.view<1, f32, cloud>) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: identifier expected for a memory space
tile.func @f(%x: !tile.view<1, f32, 3>) outputs 0 shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: Expected 'outputs'
tile.func @f() shapes [] grid [] {
  tile.return
}
// -----
// expected: Expected integer literal
tile.func @f() outputs none shapes [] grid [] {
  tile.return
}
// -----
// expected: Expected 'grid'
tile.func @f() outputs 0 shapes [] {
  tile.return
}
// -----
// expected: a size is at least 0, got -1
tile.func @f() outputs 0 shapes [] grid ["0 - 1"] {
  tile.return
}
// -----
// expected: fills [1, 0]: expected indices of arguments, ascending, at least one
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 fills [1, 0] shapes [[N], [N]] grid [1] {
  tile.return
}
// -----
// expected: fills [1, 1]: expected indices of arguments, ascending, at least one
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 fills [1, 1] shapes [[N], [N]] grid [1] {
  tile.return
}
// -----
// expected: fills []: expected indices of arguments, ascending, at least one
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 fills [] shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: fills 1: the function has 1 inputs
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 fills [1] shapes [[N], [N]] grid [1] {
  tile.return
}
// -----
// expected: fills -1: the function has 1 inputs
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 fills [-1] shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: fills 0: argument 0 must be a view, got index
tile.func @f(%n: index) outputs 0 fills [0] shapes [[]] grid [1] {
  tile.return
}
// -----
// expected: Expected integer literal
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 fills [x] shapes [[N]] grid [1] {
  tile.return
}
// -----
// expected: Expected 'shapes'
tile.func @f(%x: !tile.view<1, f32, global>) outputs 0 grid [1] fills [0] shapes [[N]] {
  tile.return
}
// -----
// expected: Expected attribute i64 but got i32
"tile.func"() <{sym_name = "f", function_type = (!tile.view<0, f32, global>) -> (), outputs = 0 : i64, fills = array<i32: 0>, shapes = [#ts.sizes<[]>], grid = #ts.sizes<[]>}> ({
^bb0(%x: !tile.view<0, f32, global>):
  tile.return
}) : () -> ()

// -----

// expected: tile.overlapping says of each of 2 arguments the first that it overlaps, not [1, 1]
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 0 shapes [[N], [N]] grid [1] attributes {tile.overlapping = array<i64: 1, 1>} {
  tile.return
}
// -----
// expected: tile.updates names the input whose type and shape the one output has, not 0
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [M]] grid [1] attributes {tile.updates = 0 : i64} {
  tile.return
}
