// expected: a cpu function ends with cpu.return
cpu.func @f() shapes [] grid [] {
}
// -----
// expected: 0 shapes for 1 arguments
cpu.func @f(%x: !tile.view<1, f32, global>) shapes [] grid [1] {
  cpu.return
}
// -----
// expected: argument 0 must be a view or a scalar, got !cpu.buffer<4x4xf32>
cpu.func @f(%x: !cpu.buffer<4x4xf32>) shapes [[]] grid [1] {
  cpu.return
}
// -----
// expected: argument 0 has rank 2, its shape 1 sizes
cpu.func @f(%x: !tile.view<2, f32, global>) shapes [[N]] grid [1] {
  cpu.return
}
// -----
// expected: no argument has the symbol M of the grid
cpu.func @f(%x: !tile.view<1, f32, global>) shapes [[N]] grid [M] {
  cpu.return
}
// -----
// expected: tile.program_id is not allowed at the cpu level: cpu.parallel gives its indices
cpu.func @f() shapes [] grid [4] {
  %p = tile.program_id 0
  cpu.return
}
// -----
// expected: the threads share the work of one cpu.parallel
cpu.func @f(%n: index) shapes [[]] grid [4] {
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    cpu.yield
  } do {
  ^bb0(%o: index, %i: index):
    cpu.yield
  }
  cpu.parallel %n, %n once {
  ^bb0(%o: index):
    cpu.yield
  } do {
  ^bb0(%o: index, %i: index):
    cpu.yield
  }
  cpu.return
}
// -----
// expected: the entry block takes f32 but the function type says i32
"cpu.func"() <{sym_name = "f", function_type = (i32) -> (), shapes = [#ts.sizes<[]>], grid = #ts.sizes<[]>}> ({
^bb0(%x: f32):
  cpu.return
}) : () -> ()
// -----
%x = arith.constant 1 : i32
// expected: Operation using value defined out of its IsolatedFromAbove parent
cpu.func @f() shapes [] grid [] {
  %y = arith.addi %x, %x : i32
  cpu.return
}
// -----
// expected: Expected 'shapes'
cpu.func @f() outputs 0 shapes [] grid [] {
  cpu.return
}
// -----
// expected: Expected 'grid'
cpu.func @f() shapes [] {
  cpu.return
}
// -----
// expected: a size is at least 0, got -1
cpu.func @f() shapes [] grid ["0 - 1"] {
  cpu.return
}
