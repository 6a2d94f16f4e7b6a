// options: -p tile-to-cpu
tile.func @f(%x: f32) outputs 0 shapes [[]] grid [1] {
  // expected: tile.full works on tensor<2x3x4xf32>: tiles on CPUs have at most two axes
  %a = tile.full %x : tensor<2x3x4xf32>
  tile.return
}
// -----
// options: -p tile-to-cpu
tile.func @f(%n: index) outputs 0 shapes [[]] grid [1] {
  // expected: a kernel that stops in a debugger runs in the interpreter only
  tile.debug_print "n", %n {tile.breakpoint} : index
  tile.return
}
// -----
// options: -p tile-to-cpu
tile.func @f(%n: index) outputs 0 shapes [[]] grid [1] {
  // expected: tile.debug_print has no machine code: machine code prints by records
  tile.debug_print "n", %n : index
  tile.return
}
// -----
// options: -p tile-to-cpu
tile.func @f(%b: i1) outputs 0 shapes [[]] grid [1] {
  %flags = tile.full %b : tensor<8xi1>
  // expected: tile.any has no machine code for CPUs
  %any = tile.any %flags : tensor<8xi1>
  tile.return
}
// -----
// options: -p tile-to-cpu{level=sparc}
// expected: tile-to-cpu has no level sparc
builtin.module {}
// -----
// options: -p tile-to-cpu{lanes=12}
// expected: vectors of 12 lanes: expected a power of two from 2 on
builtin.module {}
// -----
// options: -p tile-to-cpu{lanes=1}
// expected: vectors of 1 lanes: expected a power of two from 2 on
builtin.module {}
// -----
// options: -p tile-to-cpu{speed=9}
// expected: cannot read the passes 'tile-to-cpu{speed=9}'
builtin.module {}
// -----
// options: -p tile-to-cpu --level tile
// expected: cpu.func is not legal in a module at the tile level
tile.func @f() outputs 0 shapes [] grid [] {
  tile.return
}
// -----
// options: -p tile-to-cpu
tile.func @f(%x: !tile.view<2, f32, global>, %y: !tile.view<2, f32, global>) outputs 1 shapes [[8, 1], [8, 1]] grid [1] {
  %zero = arith.constant 0 : index
  %nothing = arith.constant 0.0 : f32
  %a = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x8xf32>
  %b = tile.load %x[%zero, %zero] : !tile.view<2, f32, global> -> tensor<8x1xf32>
  %c = tile.full %nothing : tensor<8x1xf32>
  // expected: tile.dot has one column, or one step: it is no dot of nests
  %d = tile.dot %a, %b, %c : tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32> -> tensor<8x1xf32>
  tile.store %d, %y[%zero, %zero] : tensor<8x1xf32>, !tile.view<2, f32, global>
  tile.return
}
