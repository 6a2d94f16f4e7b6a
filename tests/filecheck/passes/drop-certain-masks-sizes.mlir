// RUN: tessera opt %s -p drop-certain-masks | filecheck %s
// A mask that is true at all columns of a block is left out; one that is false at some of them stays.
tile.func @f(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>, %z: !tile.view<1, f32, global>) outputs 2 shapes [[64], [64], [64]] grid [2] {
  %width = arith.constant 32 : index
  %program = tile.program_id 0
  %start = arith.muli %program, %width : index
  %nothing = arith.constant 0.0 : f32
  %clear = tile.full %nothing : tensor<32xf32>
  %positions = tile.iota %start, 0 : tensor<32xi64>
  %all = arith.constant 64 : i64
  %some = arith.constant 63 : i64
  %ends = tile.full %all : tensor<32xi64>
  %before = tile.full %some : tensor<32xi64>
  %a = tile.load %x[%start] : !tile.view<1, f32, global> -> tensor<32xf32>
  %inside = tile.ew<lt> %positions, %ends : tensor<32xi64>, tensor<32xi64> -> tensor<32xi1>
  %short = tile.ew<lt> %positions, %before : tensor<32xi64>, tensor<32xi64> -> tensor<32xi1>
  %whole = tile.ew<select> %inside, %a, %clear : tensor<32xi1>, tensor<32xf32>, tensor<32xf32> -> tensor<32xf32>
  %part = tile.ew<select> %short, %a, %clear : tensor<32xi1>, tensor<32xf32>, tensor<32xf32> -> tensor<32xf32>
  tile.store %whole, %y[%start] : tensor<32xf32>, !tile.view<1, f32, global>
  tile.store %part, %z[%start] : tensor<32xf32>, !tile.view<1, f32, global>
  tile.return
}

// CHECK:      %a = tile.load %x[%start]
// CHECK-NEXT: %inside = tile.ew<lt> %positions, %ends
// CHECK-NEXT: %short = tile.ew<lt> %positions, %before
// CHECK-NEXT: %part = tile.ew<select> %short, %a, %clear
// CHECK-NEXT: tile.store %a, %y[%start]
// CHECK-NEXT: tile.store %part, %z[%start]
