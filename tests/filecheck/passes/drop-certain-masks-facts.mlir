// RUN: tessera opt %s -p drop-certain-masks -f "arg0.size[0] = 64" | filecheck %s
// A fact that decides a mask becomes a guard.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1 shapes [[N], [N]] grid [2] {
  %width = arith.constant 32 : index
  %program = tile.program_id 0
  %start = arith.muli %program, %width : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<32xf32>
  %n = tile.dim %x, 0 : !tile.view<1, f32, global>
  %end = arith.index_cast %n : index to i64
  %positions = tile.iota %start, 0 : tensor<32xi64>
  %ends = tile.full %end : tensor<32xi64>
  %a = tile.load %x[%start] : !tile.view<1, f32, global> -> tensor<32xf32>
  %inside = tile.ew<lt> %positions, %ends : tensor<32xi64>, tensor<32xi64> -> tensor<32xi1>
  %whole = tile.ew<select> %inside, %a, %clear : tensor<32xi1>, tensor<32xf32>, tensor<32xf32> -> tensor<32xf32>
  tile.store %whole, %y[%start] : tensor<32xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK-NOT:  tile.ew<select>
// CHECK:      tile.store %a, %y[%start]
// CHECK:      // guard: arg0.size[0] = 64
