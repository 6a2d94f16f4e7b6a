// expected: an nv function ends with nv.return
nv.func @f() outputs 0 shapes [] grid [1] threads 128 {
}
// -----
// expected: a block has whole warps and at most 1024 threads, not 100
nv.func @f() outputs 0 shapes [] grid [1] threads 100 {
  nv.return
}
// -----
// expected: a block has whole warps and at most 1024 threads, not 0
nv.func @f() outputs 0 shapes [] grid [1] threads 0 {
  nv.return
}
// -----
// expected: a block has whole warps and at most 1024 threads, not 1056
nv.func @f() outputs 0 shapes [] grid [1] threads 1056 {
  nv.return
}
// -----
// expected: tile.full gives tensor<4x4xf32>: tiles of the nv level have layouts
nv.func @f(%x: f32) outputs 0 shapes [[]] grid [1] threads 32 {
  %a = tile.full %x : tensor<4x4xf32>
  nv.return
}
// -----
// expected: 0 shapes for 1 arguments
nv.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [] grid [1] threads 32 {
  nv.return
}
// -----
// expected: argument 0 must be a view or a scalar, got !nv.shared<4x4xf32, 16>
nv.func @f(%x: !nv.shared<4x4xf32, 16>) outputs 0 shapes [[]] grid [1] threads 32 {
  nv.return
}
// -----
// expected: argument 0 has rank 2, its shape 1 sizes
nv.func @f(%x: !tile.view<2, f32, global>) outputs 0 shapes [[N]] grid [1] threads 32 {
  nv.return
}
// -----
// expected: no argument has the symbol M of the grid
nv.func @f(%x: !tile.view<1, f32, global>) outputs 0 shapes [[N]] grid [M] threads 32 {
  nv.return
}
// -----
// expected: the entry block takes f32 but the function type says i32
"nv.func"() <{sym_name = "f", function_type = (i32) -> (), outputs = 0 : i64, shapes = [#ts.sizes<[]>], grid = #ts.sizes<[]>, threads = 32 : i64}> ({
^bb0(%x: f32):
  nv.return
}) : () -> ()
// -----
%x = arith.constant 1 : i32
// expected: Operation using value defined out of its IsolatedFromAbove parent
nv.func @f() outputs 0 shapes [] grid [] threads 32 {
  %y = arith.addi %x, %x : i32
  nv.return
}
// -----
// expected: Expected 'threads'
nv.func @f() outputs 0 shapes [] grid [1] {
  nv.return
}
// -----
// expected: Expected 'outputs'
nv.func @f() shapes [] grid [1] threads 32 {
  nv.return
}
// -----
nv.func @f() outputs 0 shapes [] grid [1] threads 32 {
  %a = arith.constant 1 : index
  // expected: predicate is 12, and there are 0 to 9
  %b = "arith.cmpi"(%a, %a) <{predicate = 12 : i64}> : (index, index) -> i1
  nv.return
}
